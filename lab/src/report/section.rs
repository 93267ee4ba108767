//! The section of a report on what compares with each other: its charts and tables.

use super::chart::{Axis, Chart, Line, Look, Panel, Point};
use super::document::{Block, Entry, Table};
use super::study;
use crate::Error;
use crate::comparison::{Column, Group, Spread, Verdict, judge};
use crate::results::{Operation, Row};
use crate::timed_vacuum::Cache;
use crate::variant::{SERVER, Threshold};
use crate::workload::{Fraction, Pattern};

/// The share of the rows that is modified.
pub(super) const FRACTIONS: Axis =
    Axis { title: "rows modified", label: |fraction| percent(100.0 * fraction) };
pub(super) const SECONDS: Axis = Axis { title: "seconds", label: |seconds| seconds.to_string() };
pub(super) const RELATIVE: Axis =
    Axis { title: "% of the baseline's time", label: |share| format!("{share} %") };
const PAGES: Axis = Axis { title: "% of the table read", label: percent };

/// Without digits that rounding has left.
fn percent(value: f64) -> String {
    format!("{} %", (value * 1e8).round() / 1e8)
}

/// Seconds to three digits or so.
pub(super) fn seconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.3}") } else { format!("{value:.2}") }
}

/// What was measured, in a heading.
pub(super) fn title(group: &Group) -> String {
    let cache = match group.cache() {
        Cache::Cold => "cold",
        Cache::Kernel => "in the kernel's cache",
    };
    let operation = match group.operation() {
        Operation::Vacuum => "",
        Operation::Scan => ", the read-only scan",
    };
    format!("{}, {cache}{operation}", group.pattern().title())
}

/// How a variant is called in tables and legends.
fn name(column: &Column) -> String {
    let settings = if column.settings.is_empty() { String::new() } else { format!(", {}", column.settings) };
    match &column.reading {
        None if column.name == SERVER => format!("server{settings}"),
        Some(reading) if column.settings.is_empty() => reading.threshold.to_string(),
        _ => format!("{}{settings}", column.name),
    }
}

fn name_of_way((read_mode, read_ahead): &(String, u32)) -> String {
    format!("{read_mode}, read_ahead {read_ahead}")
}

/// The look of a threshold, the same in every chart.
pub(super) fn look_of(threshold: Threshold, others: usize) -> Look {
    let known = [1, 2, 4, 8, 16, 32].into_iter().position(|known| known == threshold.0);
    match known {
        _ if threshold == Threshold::AUTOMATIC => Look::AUTOMATIC,
        Some(position) => Look::ordered(position),
        None => Look::other(others),
    }
}

/// A group with what its tables and charts have in common.
struct Section<'a> {
    group: &'a Group<'a>,
    position: usize,
    baseline: Column,
    fractions: Vec<Fraction>,
}

/// The section of a group.
pub(super) fn of(group: &Group, position: usize) -> Result<Vec<Block>, Error> {
    let mut blocks = vec![Block::Paragraph(described(group))];
    if let Some(baseline) = group.baseline() {
        let section = Section { group, position, baseline, fractions: group.fractions() };
        blocks.extend(section.blocks()?);
    }
    let failed = group.failed_columns();
    if !failed.is_empty() {
        blocks.push(Block::Paragraph("Left out, since no run succeeded:".into()));
        blocks.push(Block::Items(failed.iter().map(|(name, error)| format!("{name}: {error}")).collect()));
    }
    Ok(blocks)
}

fn described(group: &Group) -> String {
    let shape = group.shape();
    let megabytes = shape.bytes as f64 / f64::from(1 << 20);
    let size =
        if megabytes >= 1024.0 { format!("{} GB", megabytes / 1024.0) } else { format!("{megabytes} MB") };
    let indexes = match shape.indexes {
        0 => "no index".to_owned(),
        1 => "one index".to_owned(),
        many => format!("{many} indexes"),
    };
    let repetitions = match group.repetitions() {
        (one, other) if one == other => format!("{one}"),
        (one, other) => format!("{one} to {other}"),
    };
    format!(
        "A table of {size}, {} rows a page, fillfactor {}, {indexes}. Runs of each: {repetitions}.",
        shape.rows_a_page, shape.fillfactor
    )
}

/// The two ends of what the thresholds of the first way come to, in a sentence.
pub(super) fn extremes(group: &Group) -> String {
    let Some(baseline) = group.baseline() else { return "no run succeeded.".into() };
    let section = Section { group, position: 0, baseline, fractions: group.fractions() };
    let columns = section.main_columns();
    let mut ratios: Vec<(f64, Verdict, String)> = Vec::new();
    for fraction in &section.fractions {
        for column in columns.iter().filter(|column| **column != section.baseline) {
            if let Some((ratio, verdict)) = section.ratio(*fraction, column) {
                ratios.push((
                    ratio,
                    verdict,
                    format!("{} with {fraction} of the rows modified", called(column)),
                ));
            }
        }
    }
    let best = ratios.iter().filter(|(_, verdict, _)| *verdict == Verdict::Faster);
    let worst = ratios.iter().filter(|(_, verdict, _)| *verdict == Verdict::Slower);
    let best = best.min_by(|one, other| one.0.total_cmp(&other.0));
    let worst = worst.max_by(|one, other| one.0.total_cmp(&other.0));
    let said = |(ratio, _, what): &(f64, Verdict, String)| format!("{:.0} % ({what})", 100.0 * ratio);
    let base = called(&section.baseline);
    match (best.map(said), worst.map(said)) {
        (None, None) => format!("no difference to {base} that is larger than the noise."),
        (Some(best), None) => format!("at best {best} of the time of {base}; never slower."),
        (None, Some(worst)) => format!("at worst {worst} of the time of {base}; never faster."),
        (Some(best), Some(worst)) => format!("at best {best} of the time of {base}, at worst {worst}."),
    }
}

/// In a sentence.
fn called(column: &Column) -> String {
    match &column.reading {
        None if column.name == SERVER => "the server's own VACUUM".into(),
        Some(reading) if column.settings.is_empty() => format!("threshold {}", reading.threshold),
        _ => column.name.clone(),
    }
}

impl Section<'_> {
    fn blocks(&self) -> Result<Vec<Block>, Error> {
        let main = self.main_columns();
        let first_way = self.group.ways().first().map(|(way, _)| format!(" ({})", name_of_way(way)));
        let way = first_way.unwrap_or_default();
        let mut blocks = vec![
            Block::Chart(self.times()?),
            Block::Chart(self.relative()?),
            Block::Table(self.seconds_table("seconds", &format!("Seconds, by threshold{way}"), &main)),
            Block::Table(self.percent_table(
                "percent",
                &format!("Per cent of {}, by threshold{way}", called(&self.baseline)),
                &main,
            )),
            Block::Chart(self.pages(&main)),
            Block::Table(self.pages_table(&main)),
        ];
        blocks.extend(self.ways());
        blocks.push(Block::Folded("Everything that was counted".into(), vec![Block::Table(self.details())]));
        blocks.retain(|block| !matches!(block, Block::Chart(chart) if chart.is_empty()));
        Ok(blocks)
    }

    /// The baseline, the thresholds of the first way, and what belongs to no way.
    fn main_columns(&self) -> Vec<Column> {
        let first = self.group.ways().into_iter().next().map(|(way, _)| way);
        let mut columns = self.group.columns();
        columns.retain(|column| column.way().is_none() || column.way() == first || *column == self.baseline);
        columns.sort_by_key(|column| *column != self.baseline);
        columns
    }

    fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.position)
    }

    fn is_the_studys(&self) -> bool {
        self.group.pattern() == Pattern::Uniform && self.group.operation() == Operation::Vacuum
    }

    fn ratio(&self, fraction: Fraction, column: &Column) -> Option<(f64, Verdict)> {
        let time = self.group.seconds(fraction, column)?;
        let baseline = self.group.seconds(fraction, &self.baseline)?;
        Some((time.median / baseline.median, judge(&time, &baseline, self.group.noise)))
    }

    // --- tables ---

    fn table(
        &self,
        id: &str,
        caption: &str,
        columns: &[String],
        row: impl Fn(Fraction) -> Vec<Entry>,
    ) -> Table {
        let mut head = vec!["rows modified".to_owned(), "pages modified".to_owned()];
        head.extend_from_slice(columns);
        let rows = self.fractions.iter().map(|fraction| {
            let modified = self.group.modified_percent(*fraction);
            let modified = modified.map_or("unknown".into(), |percent| format!("{percent:.2} %"));
            let mut entries = vec![Entry::text(fraction.to_string()), Entry::text(modified)];
            entries.extend(row(*fraction));
            entries
        });
        Table { id: self.id(id), caption: caption.into(), head, rows: rows.collect() }
    }

    fn failed(&self, fraction: Fraction, column: &Column) -> Entry {
        match self.group.error(fraction, column) {
            None => Entry::text(""),
            Some(error) => Entry { text: "failed".into(), hint: error.into(), ..Entry::default() },
        }
    }

    fn seconds_table(&self, id: &str, caption: &str, columns: &[Column]) -> Table {
        self.table(id, caption, &columns.iter().map(name).collect::<Vec<_>>(), |fraction| {
            columns.iter().map(|column| self.seconds_entry(fraction, column)).collect()
        })
    }

    fn seconds_entry(&self, fraction: Fraction, column: &Column) -> Entry {
        let Some(Spread { median, least, most, count }) = self.group.seconds(fraction, column) else {
            return self.failed(fraction, column);
        };
        let hint = format!("{} to {} s in {count} runs", seconds(least), seconds(most));
        Entry { text: seconds(median), hint, ..Entry::default() }
    }

    fn percent_table(&self, id: &str, caption: &str, columns: &[Column]) -> Table {
        let others: Vec<&Column> = columns.iter().filter(|column| **column != self.baseline).collect();
        self.table(id, caption, &others.iter().map(|column| name(column)).collect::<Vec<_>>(), |fraction| {
            others.iter().map(|column| self.percent_entry(fraction, column)).collect()
        })
    }

    fn percent_entry(&self, fraction: Fraction, column: &Column) -> Entry {
        match self.ratio(fraction, column) {
            None => self.failed(fraction, column),
            Some((ratio, verdict)) => Entry::ratio(ratio, verdict),
        }
    }

    fn pages_table(&self, columns: &[Column]) -> Table {
        self.table(
            "pages",
            "Pages read, by threshold",
            &columns.iter().map(name).collect::<Vec<_>>(),
            |fraction| {
                let entry = |column: &Column| {
                    let figure = |figure: fn(&Row) -> Option<u64>| {
                        self.group.spread(fraction, column, |row| figure(row).map(|pages| pages as f64))
                    };
                    let scanned = figure(|row| row.measured.pages_scanned);
                    let for_nothing = figure(|row| row.measured.pages_read_for_nothing);
                    match (scanned, for_nothing) {
                        (Some(scanned), Some(nothing)) => Entry {
                            text: format!("{:.0}", scanned.median),
                            hint: format!("{:.0} of them for nothing", nothing.median),
                            ..Entry::default()
                        },
                        _ => self.failed(fraction, column),
                    }
                };
                columns.iter().map(entry).collect()
            },
        )
    }

    fn details(&self) -> Table {
        let mut head = vec![
            "rows modified".to_owned(),
            "variant".into(),
            "runs".into(),
            "seconds".into(),
            "least".into(),
            "most".into(),
        ];
        head.extend(FIGURES.iter().map(|(name, _)| (*name).to_owned()));
        let mut rows = Vec::new();
        for fraction in &self.fractions {
            for column in self.group.columns() {
                rows.extend(self.detail(*fraction, &column));
            }
        }
        Table { id: self.id("details"), caption: "Medians of everything that was counted".into(), head, rows }
    }

    fn detail(&self, fraction: Fraction, column: &Column) -> Option<Vec<Entry>> {
        let time = self.group.seconds(fraction, column)?;
        let mut row = vec![
            Entry::text(fraction.to_string()),
            Entry::text(column.name.clone()),
            Entry::text(time.count.to_string()),
        ];
        row.extend([time.median, time.least, time.most].map(|value| Entry::text(seconds(value))));
        row.extend(FIGURES.iter().map(|(_, figure)| {
            let spread = self.group.spread(fraction, column, figure);
            Entry::text(spread.map_or(String::new(), |spread| rounded(spread.median)))
        }));
        Some(row)
    }

    // --- charts ---

    fn line(&self, label: String, look: Look, point: impl Fn(Fraction) -> Option<Spread>) -> Line {
        let points = self.fractions.iter().filter_map(|fraction| {
            let Spread { median, least, most, .. } = point(*fraction)?;
            Some(Point { x: fraction.value(), y: median, reach: (least, most) })
        });
        Line { label, look, points: points.collect() }
    }

    /// Lines of the columns, with the look that each has everywhere.
    fn lines(&self, columns: &[Column], figure: impl Fn(Fraction, &Column) -> Option<Spread>) -> Vec<Line> {
        let mut others = 0;
        let line = |column: &Column| {
            let (label, look) = if *column == self.baseline {
                (study::BASELINE.to_owned(), Look::BASELINE)
            } else if let Some(reading) = column.reading.as_ref().filter(|_| column.settings.is_empty()) {
                (format!("threshold {}", reading.threshold), look_of(reading.threshold, others))
            } else {
                others += 1;
                (name(column), Look::other(others - 1))
            };
            self.line(label, look, |fraction| figure(fraction, column))
        };
        columns.iter().map(line).collect()
    }

    /// A panel for the first way of reading, and for others with more thresholds than two.
    fn panels(&self, figure: &dyn Fn(Fraction, &Column) -> Option<Spread>) -> Vec<Panel> {
        let ways = self.group.ways();
        let mut panels: Vec<Panel> = Vec::new();
        for (position, (way, columns)) in ways.iter().enumerate() {
            if position > 0 && columns.len() <= 2 {
                continue;
            }
            let mut columns = columns.clone();
            columns.retain(|column| *column != self.baseline);
            if position == 0 {
                columns.extend(
                    self.group
                        .columns()
                        .into_iter()
                        .filter(|column| column.way().is_none() && *column != self.baseline),
                );
            }
            columns.insert(0, self.baseline.clone());
            panels.push(Panel {
                title: format!("Here: {}", name_of_way(way)),
                lines: self.lines(&columns, figure),
            });
        }
        panels
    }

    fn times(&self) -> Result<Chart, Error> {
        let mut panels = self.panels(&|fraction, column| self.group.seconds(fraction, column));
        if self.is_the_studys() {
            panels.push(study::seconds_panel()?);
        }
        Ok(Chart {
            name: self.id("time"),
            title: format!("Time: {}", title(self.group)),
            x: FRACTIONS,
            y: SECONDS,
            panels,
        })
    }

    fn relative(&self) -> Result<Chart, Error> {
        let relative = |fraction, column: &Column| {
            let baseline = self.group.seconds(fraction, &self.baseline)?.median;
            let time = self.group.seconds(fraction, column)?;
            let share = |value| 100.0 * value / baseline;
            Some(Spread {
                median: share(time.median),
                least: share(time.least),
                most: share(time.most),
                count: time.count,
            })
        };
        let mut panels = self.panels(&relative);
        if self.is_the_studys() {
            panels.push(study::percent_panel()?);
        }
        Ok(Chart {
            name: self.id("relative"),
            title: format!("Relative time: {}", title(self.group)),
            x: FRACTIONS,
            y: RELATIVE,
            panels,
        })
    }

    fn pages(&self, columns: &[Column]) -> Chart {
        let share =
            |row: &Row| Some(100.0 * row.measured.pages_scanned? as f64 / row.measured.pages_total? as f64);
        let lines = self.lines(columns, |fraction, column| self.group.spread(fraction, column, share));
        Chart {
            name: self.id("pages"),
            title: format!("Pages read: {}", title(self.group)),
            x: FRACTIONS,
            y: PAGES,
            panels: vec![Panel { title: "Here".into(), lines }],
        }
    }

    /// `sync` against `stream`, with and without hints: a panel for each threshold that
    /// was read in several ways.
    fn ways(&self) -> Vec<Block> {
        let ways = self.group.ways();
        let columns = self.group.columns();
        let mut thresholds: Vec<Threshold> = columns
            .iter()
            .filter(|column| column.way().is_some())
            .filter_map(|column| Some(column.reading.as_ref()?.threshold))
            .collect();
        thresholds.dedup();
        let mut panels = Vec::new();
        let mut compared: Vec<Column> = Vec::new();
        for threshold in thresholds {
            let of_it = |column: &&Column| {
                column.way().is_some()
                    && column.reading.as_ref().is_some_and(|reading| reading.threshold == threshold)
            };
            let of_it: Vec<Column> = columns.iter().filter(of_it).cloned().collect();
            if of_it.len() < 2 {
                continue;
            }
            let line = |column: &Column| {
                let position =
                    ways.iter().position(|(way, _)| Some(way) == column.way().as_ref()).unwrap_or(0);
                let label = column.way().as_ref().map(name_of_way).unwrap_or_default();
                self.line(label, Look::other(position), |fraction| self.group.seconds(fraction, column))
            };
            panels.push(Panel {
                title: format!("Threshold {}", threshold),
                lines: of_it.iter().map(line).collect(),
            });
            compared.extend(of_it);
        }
        if panels.is_empty() {
            return Vec::new();
        }
        let title = format!("stream and sync: {}", title(self.group));
        vec![
            Block::Chart(Chart { name: self.id("ways"), title, x: FRACTIONS, y: SECONDS, panels }),
            Block::Table(self.ways_table(&compared)),
        ]
    }

    fn ways_table(&self, columns: &[Column]) -> Table {
        let head = |column: &Column| {
            let (read_mode, read_ahead) = column.way().unwrap_or_default();
            format!("{} {read_mode} {read_ahead}", name(column))
        };
        let caption = format!("Threshold, read mode and read_ahead: per cent of {}", called(&self.baseline));
        self.table("ways-percent", &caption, &columns.iter().map(head).collect::<Vec<_>>(), |fraction| {
            columns.iter().map(|column| self.percent_entry(fraction, column)).collect()
        })
    }
}

/// A figure of a row.
type Figure = fn(&Row) -> Option<f64>;

fn count(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn megabytes(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64 / 1e6)
}

/// What the table of everything shows beside times.
const FIGURES: [(&str, Figure); 22] = [
    ("pages", |row| count(row.measured.pages_total)),
    ("pages scanned", |row| count(row.measured.pages_scanned)),
    ("pages skipped", |row| count(row.measured.pages_skipped)),
    ("pages read for nothing", |row| count(row.measured.pages_read_for_nothing)),
    ("threshold used", |row| row.measured.threshold_used.map(|threshold| threshold as f64)),
    ("blocks hit", |row| count(row.measured.blocks_hit)),
    ("blocks read", |row| count(row.measured.blocks_read)),
    ("ms reading", |row| row.measured.read_ms),
    ("ms writing", |row| row.measured.write_ms),
    ("WAL records", |row| count(row.measured.wal_records)),
    ("full-page images", |row| count(row.measured.wal_full_page_images)),
    ("WAL MB", |row| megabytes(row.measured.wal_bytes)),
    ("CPU user s", |row| row.measured.cpu_user_seconds),
    ("CPU system s", |row| row.measured.cpu_system_seconds),
    ("CPU queue s", |row| row.measured.cpu_queue_seconds),
    ("server MB read", |row| megabytes(row.measured.process_read_bytes)),
    ("server MB written", |row| megabytes(row.measured.process_write_bytes)),
    ("device reads", |row| count(row.measured.device_read_requests)),
    ("device MB read", |row| megabytes(row.measured.device_read_bytes)),
    ("device writes", |row| count(row.measured.device_write_requests)),
    ("device MB written", |row| megabytes(row.measured.device_write_bytes)),
    ("tuples removed", |row| count(row.measured.tuples_removed)),
];

/// Whole numbers as such, others to two digits after the point.
fn rounded(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

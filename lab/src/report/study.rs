//! The study's published figures in a report.

use super::chart::{Line, Look, Panel, Point};
use super::document::{Block, Entry, Table};
use super::section::look_of;
use crate::Error;
use crate::comparison::Verdict;
use crate::published::{self, Published};
use crate::variant::Threshold;

/// What the baseline is called in legends, here and in the study.
pub(super) const BASELINE: &str = "server (32)";

/// A panel with the study's times.
pub(super) fn seconds_panel() -> Result<Panel, Error> {
    panel(&published::seconds()?)
}

/// A panel with the study's relative times.
pub(super) fn percent_panel() -> Result<Panel, Error> {
    let mut percent = published::percent()?;
    percent.thresholds.insert(0, published::BASELINE);
    percent.rows.iter_mut().for_each(|(_, figures)| figures.insert(0, 100.0));
    panel(&percent)
}

fn panel(figures: &Published) -> Result<Panel, Error> {
    let line = |threshold: &i32| {
        let points = figures.of(*threshold).unwrap_or_default().into_iter();
        let points = points.map(|(fraction, y)| Point { x: fraction.value(), y, reach: (y, y) }).collect();
        let is_baseline = *threshold == published::BASELINE;
        let label = if is_baseline { BASELINE.to_owned() } else { format!("threshold {threshold}") };
        let look = if is_baseline { Look::BASELINE } else { look_of(Threshold(*threshold), 0) };
        Line { label, look, points }
    };
    Ok(Panel {
        title: "The study: 34 GB, six SATA SSDs".into(),
        lines: figures.thresholds.iter().map(line).collect(),
    })
}

/// The study's two tables.
pub(super) fn section() -> Result<Vec<Block>, Error> {
    let (seconds, percent) = (published::seconds()?, published::percent()?);
    Ok(vec![
        Block::Heading(2, "The study's figures".into()),
        Block::Paragraph(
            "Tomas Vondra, \"Maybe we should reduce SKIP_PAGES_THRESHOLD a bit?\", pgsql-hackers: a table of 34 GB, \
             about 100 rows a page, fillfactor 50, uniform updates, on servers built with other thresholds \
             (master-N in the message), on a machine with a RAID of six SATA SSDs. How far apart its repetitions \
             were is not published; ≈ stands for a difference of up to 1 %, as there is in the last row between \
             thresholds that read the same pages, and of what rounding adds to it."
                .into(),
        ),
        Block::Table(table("study-seconds", "The study: seconds", &seconds, |_, _, figure| {
            Entry::text(format!("{figure:.2}"))
        })),
        Block::Table(table("study-percent", "The study: per cent of the time at 32", &percent, |fraction, threshold, figure| {
            let time = |threshold| seconds.get(fraction, threshold).unwrap_or(f64::NAN);
            let ratio = figure / 100.0;
            let noise = published::noise(time(threshold), time(published::BASELINE));
            let verdict = match ratio - 1.0 {
                difference if difference.abs() <= noise => Verdict::Same,
                difference if difference < 0.0 => Verdict::Faster,
                _ => Verdict::Slower,
            };
            Entry::ratio(ratio, verdict)
        })),
    ])
}

fn table(
    id: &str,
    caption: &str,
    figures: &Published,
    entry: impl Fn(crate::workload::Fraction, i32, f64) -> Entry,
) -> Table {
    let names = figures.thresholds.iter().map(|threshold| {
        if *threshold == published::BASELINE { "server".to_owned() } else { threshold.to_string() }
    });
    let head = std::iter::once("rows modified".to_owned()).chain(names).collect();
    let rows = figures.rows.iter().map(|(fraction, row)| {
        let entries = figures
            .thresholds
            .iter()
            .zip(row)
            .map(|(threshold, figure)| entry(*fraction, *threshold, *figure));
        std::iter::once(Entry::text(fraction.to_string())).chain(entries).collect()
    });
    Table { id: id.into(), caption: caption.into(), head, rows: rows.collect() }
}

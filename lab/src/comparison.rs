//! What the rows of results.csv say together: medians of repetitions, what compares with
//! what, and which differences are larger than the noise.

use std::collections::BTreeSet;

use crate::results::{Operation, Purpose, Row, Shape};
use crate::timed_vacuum::Cache;
use crate::timing::median;
use crate::variant::{Reading, SERVER, Threshold};
use crate::workload::{Fraction, Pattern};

/// The repetitions of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// How many.
    pub count: usize,
}

impl Spread {
    /// Of values; None where there is none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        Some(Spread {
            median: median(values)?,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            count: values.len(),
        })
    }

    /// How far the value furthest from the median is off, as a share of the median.
    pub fn noise(&self) -> f64 {
        (self.most - self.median).max(self.median - self.least) / self.median
    }

    fn overlaps(&self, other: &Spread) -> bool {
        self.least <= other.most && other.least <= self.most
    }
}

/// What a comparison of two times comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Less time, and more than noise.
    Faster,
    /// More time, and more than noise.
    Slower,
    /// Not more than noise.
    Same,
    /// How noisy the machine is, nobody knows: one run each, and no self-check.
    Unknown,
}

/// Compares a time with the baseline's. A difference counts only where it is larger than
/// `noise` (of the self-check; as many times less counts as much as as many times more),
/// and where all repetitions of one took longer than all of
/// the other.
pub fn judge(time: &Spread, baseline: &Spread, noise: Option<f64>) -> Verdict {
    let repeated = time.count > 1 && baseline.count > 1;
    let ratio = time.median / baseline.median;
    if noise.is_none() && !repeated {
        Verdict::Unknown
    } else if ratio.max(1.0 / ratio) - 1.0 <= noise.unwrap_or(0.0) || (repeated && time.overlaps(baseline)) {
        Verdict::Same
    } else if ratio < 1.0 {
        Verdict::Faster
    } else {
        Verdict::Slower
    }
}

/// The rows of one results.csv.
pub struct Source {
    /// What it is called in the report.
    pub name: String,
    /// All its rows.
    pub rows: Vec<Row>,
}

impl Source {
    /// What compares with each other, in the order in which it was measured.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group> = Vec::new();
        for row in self.rows.iter().filter(|row| row.purpose == Purpose::Comparison) {
            match groups.iter_mut().find(|group| group.takes(row)) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { rows: vec![row], noise: self.noise(row) }),
            }
        }
        groups
    }

    /// Runs of the self-check, with what they repeat.
    pub fn self_checks(&self) -> Vec<(&Row, Spread)> {
        let rows = || self.rows.iter().filter(|row| row.purpose == Purpose::SelfCheck && row.succeeded());
        let mut firsts: Vec<&Row> = Vec::new();
        for row in rows() {
            if !firsts.iter().any(|first| first.cell == row.cell) {
                firsts.push(row);
            }
        }
        let spread = |first: &&Row| {
            let times: Vec<f64> =
                rows().filter(|row| row.cell == first.cell).filter_map(|row| row.measured.seconds).collect();
            Spread::of(&times)
        };
        firsts.into_iter().filter_map(|first| Some((first, spread(&first)?))).collect()
    }

    /// Of self-checks with the same operation and cache; the worst, where there are more.
    fn noise(&self, of: &Row) -> Option<f64> {
        let alike = |row: &Row| row.cell.operation == of.cell.operation && row.cell.cache == of.cell.cache;
        let checks = self.self_checks();
        let noises = checks.iter().filter(|(row, _)| alike(row)).map(|(_, spread)| spread.noise());
        noises.max_by(f64::total_cmp)
    }
}

/// A variant of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// How vacuum_skip reads; None for a server's own VACUUM.
    pub reading: Option<Reading>,
    /// The settings that it alone has.
    pub settings: String,
}

impl Column {
    fn of(row: &Row) -> Column {
        let cell = &row.cell;
        let reading = cell.threshold.map(|threshold| Reading {
            threshold: Threshold(threshold),
            read_mode: cell.read_mode.clone(),
            read_ahead: cell.read_ahead.unwrap_or(0),
        });
        Column { name: cell.variant.clone(), reading, settings: cell.settings.clone() }
    }

    /// The way of reading, without the threshold; None for a server's own VACUUM, and
    /// for variants with settings of their own.
    pub fn way(&self) -> Option<(String, u32)> {
        let reading = self.reading.as_ref().filter(|_| self.settings.is_empty())?;
        Some((reading.read_mode.clone(), reading.read_ahead))
    }

    fn rank(&self) -> (u8, u32) {
        match &self.reading {
            None if self.name == SERVER => (0, 0),
            Some(reading) if reading.threshold == Threshold::AUTOMATIC => (1, u32::MAX),
            Some(reading) => (1, reading.threshold.0.unsigned_abs()),
            None => (2, 0),
        }
    }
}

/// Rows that compare with each other: one table, one pattern, one way of measuring.
pub struct Group<'a> {
    rows: Vec<&'a Row>,
    /// Of the self-check, as a share of the time.
    pub noise: Option<f64>,
}

impl<'a> Group<'a> {
    fn takes(&self, row: &Row) -> bool {
        let own = self.rows[0];
        let key = |row: &Row| (row.cell.pattern, row.cell.operation, row.cell.cache);
        let table = |shape: &Shape| (shape.bytes, shape.rows_a_page, shape.fillfactor, shape.indexes);
        key(own) == key(row) && table(&own.shape) == table(&row.shape)
    }

    /// How rows were modified.
    pub fn pattern(&self) -> Pattern {
        self.rows[0].cell.pattern
    }

    /// What was timed.
    pub fn operation(&self) -> Operation {
        self.rows[0].cell.operation
    }

    /// Where the files' pages were.
    pub fn cache(&self) -> Cache {
        self.rows[0].cell.cache
    }

    /// The table.
    pub fn shape(&self) -> &Shape {
        &self.rows[0].shape
    }

    /// All its rows.
    pub fn rows(&self) -> &[&'a Row] {
        &self.rows
    }

    /// In rising order.
    pub fn fractions(&self) -> Vec<Fraction> {
        let mut fractions: Vec<Fraction> = self.rows.iter().map(|row| row.cell.fraction).collect();
        fractions.sort_by(|one, other| one.value().total_cmp(&other.value()));
        fractions.dedup();
        fractions
    }

    /// Variants with a figure: the server's own first, then ours by threshold, then other
    /// builds.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for row in self.rows.iter().filter(|row| row.succeeded()) {
            let column = Column::of(row);
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns.sort_by_key(Column::rank);
        columns
    }

    /// Variants without any figure, with what went wrong.
    pub fn failed_columns(&self) -> Vec<(String, String)> {
        let columns = self.columns();
        let mut failed: Vec<(String, String)> = Vec::new();
        for row in &self.rows {
            let known = columns.contains(&Column::of(row))
                || failed.iter().any(|(name, _)| *name == row.cell.variant);
            if !known {
                failed.push((row.cell.variant.clone(), row.measured.error.clone()));
            }
        }
        failed
    }

    /// What others are compared with: the server's own VACUUM, or else our scan that does
    /// what it does.
    pub fn baseline(&self) -> Option<Column> {
        let columns = self.columns();
        let ours = |column: &&Column| column.reading.as_ref().is_some_and(Reading::is_the_servers_own);
        let server = columns.iter().find(|column| column.name == SERVER);
        server.or_else(|| columns.iter().find(ours)).or(columns.first()).cloned()
    }

    /// The ways of reading, in the order in which they were measured, with the variants
    /// of each.
    pub fn ways(&self) -> Vec<((String, u32), Vec<Column>)> {
        let columns = self.columns();
        let mut ways: Vec<((String, u32), Vec<Column>)> = Vec::new();
        for row in &self.rows {
            let Some(way) = Column::of(row).way() else { continue };
            if !ways.iter().any(|(known, _)| *known == way) {
                let of_it =
                    columns.iter().filter(|column| column.way().as_ref() == Some(&way)).cloned().collect();
                ways.push((way, of_it));
            }
        }
        ways.retain(|(_, columns)| !columns.is_empty());
        ways
    }

    /// The repetitions of one cell.
    pub fn cell(&self, fraction: Fraction, column: &Column) -> impl Iterator<Item = &'a Row> {
        let column = column.clone();
        let rows = self.rows.iter().copied();
        rows.filter(move |row| row.cell.fraction == fraction && Column::of(row) == column)
    }

    /// A figure's repetitions in one cell.
    pub fn spread(
        &self,
        fraction: Fraction,
        column: &Column,
        figure: impl Fn(&Row) -> Option<f64>,
    ) -> Option<Spread> {
        let values: Vec<f64> = self.cell(fraction, column).filter_map(figure).collect();
        Spread::of(&values)
    }

    /// The seconds of one cell.
    pub fn seconds(&self, fraction: Fraction, column: &Column) -> Option<Spread> {
        self.spread(fraction, column, |row| row.measured.seconds)
    }

    /// What went wrong in a cell that has no figure.
    pub fn error(&self, fraction: Fraction, column: &Column) -> Option<&'a str> {
        if self.seconds(fraction, column).is_some() {
            return None;
        }
        self.cell(fraction, column).map(|row| row.measured.error.as_str()).last()
    }

    /// The share of the pages that are modified, in per cent.
    pub fn modified_percent(&self, fraction: Fraction) -> Option<f64> {
        let rows = self.rows.iter().filter(|row| row.cell.fraction == fraction);
        let shares = rows.filter_map(|row| {
            Some(100.0 * row.shape.modified_pages as f64 / row.measured.pages_total? as f64)
        });
        median(&shares.collect::<Vec<f64>>())
    }

    /// How often cells were repeated: the fewest and the most times.
    pub fn repetitions(&self) -> (usize, usize) {
        let counts: BTreeSet<usize> = self
            .columns()
            .iter()
            .flat_map(|column| {
                self.fractions()
                    .into_iter()
                    .filter_map(|fraction| Some(self.seconds(fraction, column)?.count))
            })
            .collect();
        (counts.first().copied().unwrap_or(0), counts.last().copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::{Spread, Verdict, judge};

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values).unwrap()
    }

    #[test]
    fn a_difference_below_the_noise_is_none() {
        let (one, other) = (spread(&[1.0, 1.01]), spread(&[1.04, 1.05]));
        assert_eq!(judge(&other, &one, Some(0.05)), Verdict::Same);
        assert_eq!(judge(&other, &one, Some(0.03)), Verdict::Slower);
        assert_eq!(judge(&one, &other, Some(0.03)), Verdict::Faster);
        assert_eq!(judge(&one, &other, None), Verdict::Faster);
    }

    #[test]
    fn in_much_noise_a_small_part_of_the_time_is_still_faster() {
        let (one, other) = (spread(&[1.0]), spread(&[5.0]));
        assert_eq!(judge(&one, &other, Some(0.9)), Verdict::Faster);
        assert_eq!(judge(&other, &one, Some(0.9)), Verdict::Slower);
        assert_eq!(judge(&one, &other, Some(4.1)), Verdict::Same);
    }

    #[test]
    fn repetitions_that_overlap_do_not_differ() {
        let (one, other) = (spread(&[1.0, 1.0, 3.0]), spread(&[2.0, 2.0, 2.0]));
        assert_eq!(judge(&one, &other, Some(0.1)), Verdict::Same);
    }

    #[test]
    fn one_run_each_tells_nothing_without_a_self_check() {
        let (one, other) = (spread(&[1.0]), spread(&[2.0]));
        assert_eq!(judge(&one, &other, None), Verdict::Unknown);
        assert_eq!(judge(&one, &other, Some(0.1)), Verdict::Faster);
    }

    #[test]
    fn noise_is_the_furthest_from_the_median() {
        assert!((spread(&[0.9, 1.0, 1.3]).noise() - 0.3).abs() < 1e-12);
    }
}

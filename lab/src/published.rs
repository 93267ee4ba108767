//! The study's published figures, as they are in `published/`.

use csv::ReaderBuilder;

use crate::Error;
use crate::workload::Fraction;

/// One table of the message: a row for each fraction, a column for each threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The thresholds, as in the table's header.
    pub thresholds: Vec<i32>,
    /// A fraction's figures, in the order of the thresholds.
    pub rows: Vec<(Fraction, Vec<f64>)>,
}

/// The threshold of the study's baseline.
pub const BASELINE: i32 = 32;

/// The duration of VACUUM in seconds.
///
/// # Errors
///
/// Where the file in `published/` is damaged.
pub fn seconds() -> Result<Published, Error> {
    parse(include_str!("../published/seconds.csv"))
}

/// The duration in per cent of the baseline's.
///
/// # Errors
///
/// Where the file in `published/` is damaged.
pub fn percent() -> Result<Published, Error> {
    parse(include_str!("../published/percent.csv"))
}

impl Published {
    /// The figures of one threshold, over the fractions.
    pub fn of(&self, threshold: i32) -> Option<Vec<(Fraction, f64)>> {
        let position = self.thresholds.iter().position(|known| *known == threshold)?;
        Some(self.rows.iter().map(|(fraction, figures)| (*fraction, figures[position])).collect())
    }

    /// One figure.
    pub fn get(&self, fraction: Fraction, threshold: i32) -> Option<f64> {
        self.of(threshold)?.into_iter().find(|(known, _)| *known == fraction).map(|(_, figure)| figure)
    }
}

/// By how much two published times have to differ to be different, as a share of the
/// baseline's. How far apart the study's repetitions were is not published; but at the
/// greatest fraction, where thresholds from 8 on read the same pages, times differ by one
/// hundredth. Short times can differ by twice half of their last digit more.
pub fn noise(seconds: f64, baseline: f64) -> f64 {
    0.01 + 0.01 / seconds.min(baseline)
}

fn parse(text: &str) -> Result<Published, Error> {
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let thresholds = reader.headers()?.iter().skip(1).map(str::parse).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let figures = record.iter().skip(1).map(str::parse).collect::<Result<_, _>>()?;
        rows.push((record.get(0).unwrap_or_default().parse()?, figures));
    }
    Ok(Published { thresholds, rows })
}

//! The ways in which the study's table is modified after a VACUUM has set its visibility
//! map.
//!
//! The study updates rows at random all over the table. Real updates are rarely so, and
//! how the modified pages lie is what the threshold is about; hence the other patterns.
//! Everything is a function of its options: the same rows are modified each time.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use postgres::Client;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::study_table::{NAME, Table};

/// The study's update fractions.
pub const STUDY_FRACTIONS: [Fraction; 10] = [
    Fraction(1e-6),
    Fraction(1e-5),
    Fraction(2.5e-5),
    Fraction(5e-5),
    Fraction(7.5e-5),
    Fraction(1e-4),
    Fraction(2e-4),
    Fraction(5e-4),
    Fraction(1e-3),
    Fraction(1e-2),
];

/// A share of the table's rows: more than 0, at most 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// As a number.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// Without an exponent, as in the study's tables.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Fraction, String> {
        match text.parse() {
            Ok(value) if value > 0.0 && value <= 1.0 => Ok(Fraction(value)),
            _ => Err(format!("\"{text}\" is not a fraction: more than 0, at most 1")),
        }
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fraction, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How a share of the rows is modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Updates at random all over the table, as in the study.
    Uniform,
    /// Updates of runs of about 1,000 adjacent rows.
    Clustered,
    /// Deletes at random.
    Deletes,
    /// Updates that mostly hit the newest rows, while new rows move the tail on.
    HotTail,
}

impl Pattern {
    /// In a heading.
    pub fn title(self) -> &'static str {
        match self {
            Pattern::Uniform => "Uniform updates",
            Pattern::Clustered => "Clustered updates",
            Pattern::Deletes => "Deletes",
            Pattern::HotTail => "A moving hot tail",
        }
    }

    /// On the command line and in results.csv.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Uniform => "uniform",
            Pattern::Clustered => "clustered",
            Pattern::Deletes => "deletes",
            Pattern::HotTail => "hot-tail",
        }
    }

    /// Modifies a share of the rows.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn modify(self, client: &mut Client, table: &Table, fraction: Fraction) -> Result<(), Error> {
        client.batch_execute("SELECT setseed(0)")?;
        for statement in self.statements(fraction.0, table.rows()) {
            client.batch_execute(&statement)?;
        }
        Ok(())
    }

    /// Statements that modify `fraction` of `rows`.
    fn statements(self, fraction: f64, rows: u64) -> Vec<String> {
        let update = format!("UPDATE {NAME} SET value = value + 1 WHERE");
        match self {
            Pattern::Uniform => vec![format!("{update} random() < {fraction}")],
            Pattern::Deletes => vec![format!("DELETE FROM {NAME} WHERE random() < {fraction}")],
            Pattern::Clustered => vec![format!("{update} {}", in_a_cluster(fraction, rows))],
            Pattern::HotTail => hot_tail(fraction, rows),
        }
    }
}

/// A condition that holds for about `fraction` of the rows, in runs of up to 1,000, one
/// at a random place of each equal part of the table.
fn in_a_cluster(fraction: f64, rows: u64) -> String {
    let wanted = ((fraction * rows as f64).round() as u64).clamp(1, rows);
    let clusters = wanted.div_ceil(1000);
    let (length, part) = (wanted / clusters, rows / clusters);
    format!(
        "(id - 1) % {part} - (hashint8((id - 1) / {part})::bigint + 2147483648) % ({part} - {length} + 1)
         BETWEEN 0 AND {length} - 1"
    )
}

/// Four times over: a quarter of the rows are added, and a quarter are updated, where a
/// row's chance falls by e with each tenth of the table that is younger.
fn hot_tail(fraction: f64, rows: u64) -> Vec<String> {
    let share = fraction / 4.0;
    let added = ((share * rows as f64).round() as u64).max(1);
    let steps = (0..4).flat_map(|step| {
        let last = rows + (step + 1) * added;
        [
            format!(
                "INSERT INTO {NAME} SELECT id, 0, (SELECT filler FROM {NAME} LIMIT 1)
                 FROM generate_series({}, {last}) AS id",
                last - added + 1
            ),
            format!(
                "UPDATE {NAME} SET value = value + 1
                 WHERE random() < {} * exp(-10 * ({last} - id) / {rows}::float8)",
                10.0 * share
            ),
        ]
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::{Fraction, STUDY_FRACTIONS};

    #[test]
    fn fractions_read_as_they_are_written() {
        let written: Vec<String> = STUDY_FRACTIONS.iter().map(Fraction::to_string).collect();
        assert_eq!(written[..3], ["0.000001", "0.00001", "0.000025"]);
        let read: Vec<Fraction> = written.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(read, STUDY_FRACTIONS);
        for wrong in ["0", "1.1", "-0.1", "NaN", "x", ""] {
            assert!(wrong.parse::<Fraction>().is_err(), "{wrong}");
        }
    }
}

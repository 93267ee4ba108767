//! `make bench`: vacuum_skip against what PostgreSQL has, side by side on the same
//! table in one run.
//!
//! Each figure is the median of several times, taken in turn. Times of different
//! runs do not compare on a machine that others use too; the ratios do.

mod functions;
mod vacuum;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use vacuum_skip_lab::Error;
use vacuum_skip_lab::workload::{Fraction, STUDY_FRACTIONS};

/// Times vacuum_skip's functions and its VACUUM against PostgreSQL's own on the study's
/// table.
#[derive(Parser)]
struct Arguments {
    /// An empty folder on the storage to measure, for a throwaway server.
    #[arg(long)]
    folder: PathBuf,
    /// One part alone.
    #[arg(long)]
    part: Option<Part>,
    /// Pages of the table of the functions.
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    /// The share of its rows that are updated.
    #[arg(long, default_value = "0.0005")]
    fraction: Fraction,
    /// Pages of the table of VACUUM: 1 GB. Three times that is needed on the device.
    #[arg(long, default_value_t = 131_072, value_parser = clap::value_parser!(u64).range(1..))]
    vacuum_pages: u64,
    /// The shares of its rows that are updated; by default the study's ten.
    #[arg(long, value_delimiter = ',', default_values_t = STUDY_FRACTIONS)]
    vacuum_fractions: Vec<Fraction>,
    /// Times each is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The functions that SQL calls.
    Functions,
    /// VACUUM itself.
    Vacuum,
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.part != Some(Part::Vacuum) {
        functions::measure(&arguments)?;
    }
    if arguments.part != Some(Part::Functions) {
        vacuum::measure(&arguments)?;
    }
    Ok(())
}

//! What VACUUM (VERBOSE) says of itself, in figures.

use crate::Error;

/// Some of the figures of a vacuum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VacuumFigures {
    /// Pages of the table when it ended.
    pub rel_pages: u64,
    /// Pages that it cut off.
    pub removed_pages: u64,
    /// Pages that it read.
    pub scanned_pages: u64,
    /// The threshold, as vacuum_skip's engine says; None: it was the server's own.
    pub threshold: Option<u64>,
    /// Dead tuples that it removed.
    pub removed_tuples: u64,
    /// Blocks that it found in shared buffers.
    pub blocks_hit: u64,
    /// Blocks that it did not find there.
    pub blocks_read: u64,
    /// Milliseconds in which it waited for reads, and for writes; None without
    /// track_io_timing.
    pub io_ms: Option<(f64, f64)>,
    /// WAL records that it wrote.
    pub wal_records: u64,
    /// Full page images among them.
    pub wal_fpi: u64,
    /// Bytes of WAL.
    pub wal_bytes: u64,
}

impl VacuumFigures {
    /// Reads them out of the messages of a VACUUM (VERBOSE) of one table, in English.
    ///
    /// # Errors
    ///
    /// Where a line is missing, or not as PostgreSQL 18 has it.
    pub fn parse(messages: &str) -> Result<VacuumFigures, Error> {
        let named = |label: &str, what: &str| {
            line(messages, label).ok_or_else(|| format!("VACUUM (VERBOSE) did not say its {what}"))
        };
        let pages = named("pages: ", "pages")?;
        let tuples = named("tuples: ", "tuples")?;
        let buffers = named("buffer usage: ", "buffers")?;
        let wal = named("WAL usage: ", "WAL")?;
        let threshold = line(messages, "skip pages threshold: ");
        let threshold = threshold.map(|line| line.split(' ').next().unwrap_or_default().parse());
        Ok(VacuumFigures {
            rel_pages: figure(pages, " remain")?,
            removed_pages: figure(pages, " removed")?,
            scanned_pages: figure(pages, " scanned")?,
            threshold: threshold.transpose()?,
            removed_tuples: figure(tuples, " removed")?,
            blocks_hit: figure(buffers, " hits")?,
            blocks_read: figure(buffers, " reads")?,
            io_ms: line(messages, "I/O timings: ").map(io_timings).transpose()?,
            wal_records: figure(wal, " records")?,
            wal_fpi: figure(wal, " full page images")?,
            wal_bytes: figure(wal, " bytes")?,
        })
    }
}

/// The figure of a comma-separated part of a line that ends with `unit`.
fn figure(line: &str, unit: &str) -> Result<u64, Error> {
    let figure = line.split(", ").find_map(|part| part.split(" (").next()?.strip_suffix(unit));
    let figure = figure.and_then(|figure| figure.parse().ok());
    Ok(figure.ok_or_else(|| format!("no figure for{unit} in: {line}"))?)
}

/// Of `read: 1.500 ms, write: 0.250 ms`.
fn io_timings(line: &str) -> Result<(f64, f64), Error> {
    let milliseconds = |name: &str| {
        let part = line.split(", ").find_map(|part| part.strip_prefix(name)?.strip_suffix(" ms"));
        part.and_then(|part| part.parse().ok())
    };
    let both = milliseconds("read: ").zip(milliseconds("write: "));
    Ok(both.ok_or_else(|| format!("no figures in: I/O timings: {line}"))?)
}

/// The rest of the line that begins with `label`.
fn line<'a>(messages: &'a str, label: &str) -> Option<&'a str> {
    messages.lines().find_map(|line| line.strip_prefix(label))
}

#[cfg(test)]
mod tests {
    use super::VacuumFigures;

    const SERVER: &str = "finished vacuuming \"postgres.public.study\": index scans: 0
pages: 0 removed, 131072 remain, 59104 scanned (45.09% of total), 0 eagerly scanned
tuples: 5905 removed, 12058624 remain, 0 are dead but not yet removable
buffer usage: 59220 hits, 59071 reads, 5905 dirtied
WAL usage: 11812 records, 5906 full page images, 27551420 bytes, 2 buffers full
";

    #[test]
    fn the_figures_of_a_vacuum_are_read() {
        let figures = VacuumFigures {
            rel_pages: 131_072,
            removed_pages: 0,
            scanned_pages: 59_104,
            threshold: None,
            removed_tuples: 5_905,
            blocks_hit: 59_220,
            blocks_read: 59_071,
            io_ms: None,
            wal_records: 11_812,
            wal_fpi: 5_906,
            wal_bytes: 27_551_420,
        };
        assert_eq!(VacuumFigures::parse(SERVER).unwrap(), figures);
        let ours = format!(
            "{SERVER}I/O timings: read: 1.500 ms, write: 0.250 ms\nskip pages threshold: 1 (session), 0 pages (0.00% of total) scanned only because of it\n"
        );
        let figures = VacuumFigures { threshold: Some(1), io_ms: Some((1.5, 0.25)), ..figures };
        assert_eq!(VacuumFigures::parse(&ours).unwrap(), figures);
    }

    #[test]
    fn a_missing_figure_is_an_error() {
        let error = |messages: &str| VacuumFigures::parse(messages).unwrap_err().to_string();
        assert_eq!(error("vacuuming"), "VACUUM (VERBOSE) did not say its pages");
        assert_eq!(error(&SERVER.replace("WAL", "Wal")), "VACUUM (VERBOSE) did not say its WAL");
        assert!(
            error(&SERVER.replace("59104 scanned", "many scanned")).starts_with("no figure for scanned in")
        );
    }
}

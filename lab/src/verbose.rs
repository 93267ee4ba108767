//! What VACUUM (VERBOSE) says of itself, in figures.

use crate::Error;

/// Some of the figures of a vacuum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VacuumFigures {
    /// Pages of the table when it ended.
    pub rel_pages: u64,
    /// Pages that it read.
    pub scanned_pages: u64,
    /// The threshold, as vacuum_skip's engine says; None: it was the server's own.
    pub threshold: Option<u64>,
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
        let pages = line(messages, "pages: ").ok_or("VACUUM (VERBOSE) did not say its pages")?;
        let wal = line(messages, "WAL usage: ").ok_or("VACUUM (VERBOSE) did not say its WAL")?;
        let figure = |line: &str, unit: &str| {
            let figure = line.split(", ").find_map(|part| part.split(" (").next()?.strip_suffix(unit));
            figure
                .and_then(|figure| figure.parse().ok())
                .ok_or_else(|| format!("no figure for{unit} in: {line}"))
        };
        let threshold = line(messages, "skip pages threshold: ");
        let threshold = threshold.map(|line| line.split(' ').next().unwrap_or_default().parse());
        Ok(VacuumFigures {
            rel_pages: figure(pages, " remain")?,
            scanned_pages: figure(pages, " scanned")?,
            threshold: threshold.transpose()?,
            wal_records: figure(wal, " records")?,
            wal_fpi: figure(wal, " full page images")?,
            wal_bytes: figure(wal, " bytes")?,
        })
    }
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
            scanned_pages: 59_104,
            threshold: None,
            wal_records: 11_812,
            wal_fpi: 5_906,
            wal_bytes: 27_551_420,
        };
        assert_eq!(VacuumFigures::parse(SERVER).unwrap(), figures);
        let ours = format!(
            "{SERVER}skip pages threshold: 1 (session), 0 pages (0.00% of total) scanned only because of it\n"
        );
        let figures = VacuumFigures { threshold: Some(1), ..figures };
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

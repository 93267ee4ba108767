//! results.csv: a row for each run, appended and synced as it ends.
//!
//! A row says everything about itself, the machine included, so that files can be put
//! together and read without others. Its last character is the line's end: a line
//! without was being written when the program was killed, and is no row.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use csv::{ErrorKind, ReaderBuilder, StringRecord, WriterBuilder};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::machine::Machine;
use crate::processes::Difference;
use crate::timed_vacuum::Cache;
use crate::workload::{Fraction, Pattern};

/// The columns, in order.
#[rustfmt::skip]
pub const COLUMNS: [&str; 58] = [
    "started", "purpose", "repetition",
    "pattern", "fraction", "variant", "threshold", "read_mode", "read_ahead", "settings", "operation", "cache",
    "table_bytes", "rows", "rows_a_page", "fillfactor", "indexes", "modified_pages",
    "error", "seconds", "pages_total", "pages_scanned", "pages_skipped", "pages_read_for_nothing",
    "threshold_used",
    "blocks_hit", "blocks_read", "read_ms", "write_ms", "wal_records", "wal_full_page_images", "wal_bytes",
    "cpu_user_seconds", "cpu_system_seconds", "cpu_queue_seconds", "process_read_bytes", "process_write_bytes",
    "device_read_requests", "device_read_bytes", "device_write_requests", "device_write_bytes", "tuples_removed",
    "cache_dropped_by", "cpu", "cpus", "memory_bytes", "kernel", "file_system", "mount_options",
    "device", "device_model", "device_rotational", "device_scheduler", "device_queue_requests",
    "device_readahead_kb", "server_version", "server_settings", "lab_version",
];

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To compare variants.
    Comparison,
    /// To tell how far apart runs of one cell are.
    SelfCheck,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// VACUUM.
    Vacuum,
    /// The read-only scan, without WAL.
    Scan,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// How the rows were modified.
    pub pattern: Pattern,
    /// How many.
    pub fraction: Fraction,
    /// The variant's name.
    pub variant: String,
    /// vacuum_skip's threshold, -1 for automatic; none for a server's own VACUUM.
    pub threshold: Option<i32>,
    /// vacuum_skip's read mode.
    pub read_mode: String,
    /// vacuum_skip's read_ahead.
    pub read_ahead: Option<u32>,
    /// The settings that this variant alone has.
    pub settings: String,
    /// What was timed.
    pub operation: Operation,
    /// Where the files' pages were.
    pub cache: Cache,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Rows before the modification.
    pub rows: u64,
    /// Rows a page.
    pub rows_a_page: u32,
    /// Storage parameter.
    pub fillfactor: u32,
    /// How many.
    pub indexes: u32,
    /// Pages that are not all-visible when a run begins.
    pub modified_pages: u64,
}

/// What a run took; nothing where it failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What went wrong, in one line; else empty.
    pub error: String,
    /// As the client sees it.
    pub seconds: Option<f64>,
    /// Pages of the table.
    pub pages_total: Option<u64>,
    /// Pages read by the heap scan.
    pub pages_scanned: Option<u64>,
    /// Pages skipped by it.
    pub pages_skipped: Option<u64>,
    /// Pages read though they were all-visible.
    pub pages_read_for_nothing: Option<u64>,
    /// The threshold in force, where vacuum_skip says it.
    pub threshold_used: Option<i64>,
    /// Found in shared buffers.
    pub blocks_hit: Option<u64>,
    /// Not found there.
    pub blocks_read: Option<u64>,
    /// Milliseconds waiting for reads, where track_io_timing is on.
    pub read_ms: Option<f64>,
    /// Milliseconds waiting for writes.
    pub write_ms: Option<f64>,
    /// WAL records.
    pub wal_records: Option<u64>,
    /// Full-page images in them.
    pub wal_full_page_images: Option<u64>,
    /// Bytes of WAL.
    pub wal_bytes: Option<u64>,
    /// Of all processes of the server.
    pub cpu_user_seconds: Option<f64>,
    /// Of all processes of the server.
    pub cpu_system_seconds: Option<f64>,
    /// In which they were ready to run, but others had the processors.
    pub cpu_queue_seconds: Option<f64>,
    /// Bytes that the server's processes had read from the device (/proc/PID/io).
    pub process_read_bytes: Option<u64>,
    /// Bytes that they made dirty; recent kernels count whole folios, of up to megabytes.
    pub process_write_bytes: Option<u64>,
    /// Requests that the device completed, for whomever (/sys/dev/block).
    pub device_read_requests: Option<u64>,
    /// Bytes that it read.
    pub device_read_bytes: Option<u64>,
    /// Write requests that it completed.
    pub device_write_requests: Option<u64>,
    /// Bytes that it wrote.
    pub device_write_bytes: Option<u64>,
    /// Dead tuples removed; those found, of a read-only scan.
    pub tuples_removed: Option<u64>,
}

/// A row of results.csv.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// When the run began: UTC.
    pub started: String,
    /// What it was for.
    pub purpose: Purpose,
    /// From 1.
    pub repetition: u32,
    /// What was run.
    pub cell: Cell,
    /// On what.
    pub shape: Shape,
    /// What it took.
    pub measured: Measured,
    /// Where.
    pub machine: Machine,
}

impl Measured {
    /// What the kernel has counted, without anything that the server says.
    pub fn of(used: &Difference) -> Measured {
        let seconds = |nanoseconds: u64| Some(nanoseconds as f64 / 1e9);
        Measured {
            cpu_user_seconds: seconds(used.server.user),
            cpu_system_seconds: seconds(used.server.system),
            cpu_queue_seconds: seconds(used.server.in_queue),
            process_read_bytes: Some(used.server.read_bytes),
            process_write_bytes: Some(used.server.write_bytes),
            device_read_requests: used.device.map(|device| device.reads),
            device_read_bytes: used.device.map(|device| device.read_bytes),
            device_write_requests: used.device.map(|device| device.writes),
            device_write_bytes: used.device.map(|device| device.write_bytes),
            ..Measured::default()
        }
    }
}

impl Row {
    /// What makes two rows the same run.
    fn is_run(&self, purpose: Purpose, cell: &Cell, repetition: u32) -> bool {
        self.purpose == purpose && self.repetition == repetition && self.cell == *cell
    }

    /// Whether it has figures.
    pub fn succeeded(&self) -> bool {
        self.measured.error.is_empty()
    }
}

/// results.csv of a run that goes on.
pub struct Log {
    file: File,
    rows: Vec<Row>,
}

impl Log {
    /// Opens the file, or makes it. The beginning of a row at its end is cut off.
    ///
    /// # Errors
    ///
    /// Those of the file system, and where the file is not one of ours.
    pub fn open(path: &Path) -> Result<Log, Error> {
        let named = |error| format!("{}: {error}", path.display());
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(named)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(named)?;
        let header = header();
        if header.starts_with(&bytes) {
            bytes.clone_from(&header);
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&header)?;
        }
        let whole = whole_lines(&bytes);
        let rows = parse(path, whole)?;
        file.set_len(whole.len() as u64)?;
        file.seek(SeekFrom::End(0))?;
        file.sync_all()?;
        Ok(Log { file, rows })
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether a run is there. One that failed is not: its cause may be gone.
    pub fn has(&self, purpose: Purpose, cell: &Cell, repetition: u32) -> bool {
        self.rows.iter().any(|row| row.succeeded() && row.is_run(purpose, cell, repetition))
    }

    /// Adds a row; it is on the device when this returns.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn append(&mut self, row: Row) -> Result<(), Error> {
        let mut writer = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        writer.serialize(&row)?;
        // At once, so that no other state is left behind than none of it or the beginning.
        self.file.write_all(&writer.into_inner()?)?;
        self.file.sync_data()?;
        self.rows.push(row);
        Ok(())
    }
}

/// Reads a results.csv; the file of a folder, if it is one.
///
/// # Errors
///
/// Where it cannot be read or is not one of ours: the line, and the column.
pub fn read(path: &Path) -> Result<Vec<Row>, Error> {
    let path = file_of(path);
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&path, whole_lines(&bytes))
}

/// The results.csv that a file or a folder stands for.
pub fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("results.csv") } else { path.to_owned() }
}

fn header() -> Vec<u8> {
    let mut header = COLUMNS.join(",").into_bytes();
    header.push(b'\n');
    header
}

/// Without what comes after the last line's end.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    &bytes[..end]
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Row>, Error> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut records = reader.records();
    let first = records.next().transpose().map_err(|error| described(path, &error))?;
    let Some(first) = first else { return Ok(Vec::new()) };
    check_header(path, &first)?;
    records
        .map(|record| {
            let record = record.map_err(|error| described(path, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            if record.len() != COLUMNS.len() {
                let (found, wanted) = (record.len(), COLUMNS.len());
                return Err(
                    format!("{}: line {line} has {found} columns, not {wanted}", path.display()).into()
                );
            }
            record.deserialize(None).map_err(|error| misread(path, line, &record, &error))
        })
        .collect()
}

fn check_header(path: &Path, found: &StringRecord) -> Result<(), Error> {
    for (position, wanted) in COLUMNS.iter().enumerate() {
        let found = found.get(position).unwrap_or_default();
        if found != *wanted {
            return Err(format!(
                "{}: line 1, column {}: \"{found}\" where \"{wanted}\" is expected; this is no results.csv of vacuum-skip-lab {}",
                path.display(),
                position + 1,
                env!("CARGO_PKG_VERSION"),
            )
            .into());
        }
    }
    Ok(())
}

/// The error with the file and the line.
fn described(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or(0, csv::Position::line);
    format!("{}: line {line}: {error}", path.display()).into()
}

/// The error with the file, the line and the column. csv does not tell the column of every
/// error: it is the last of the shortest record with the same error.
fn misread(path: &Path, line: u64, record: &StringRecord, error: &csv::Error) -> Error {
    let text = |error: &csv::Error| match error.kind() {
        ErrorKind::Deserialize { err, .. } => err.kind().to_string(),
        _ => error.to_string(),
    };
    let is_enough = |columns: &usize| {
        let mut shorter = record.clone();
        shorter.truncate(*columns);
        shorter.deserialize::<Row>(None).is_err_and(|other| text(&other) == text(error))
    };
    let column = (1..=COLUMNS.len()).find(is_enough).unwrap_or(COLUMNS.len());
    format!("{}: line {line}, column {column} ({}): {}", path.display(), COLUMNS[column - 1], text(error))
        .into()
}

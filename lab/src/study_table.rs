//! The study's table: about 100 rows a page at fillfactor 50, some rows updated.

use std::fs;
use std::path::{Path, PathBuf};

use postgres::Client;

use crate::Error;

/// Rows of two bigints that fit on a page at fillfactor 50.
const ROWS_A_PAGE: u64 = 92;

/// The table's name.
pub const NAME: &str = "study";

/// The update fractions of the study: the share of the rows that are updated.
pub const FRACTIONS: [f64; 10] = [1e-6, 1e-5, 2.5e-5, 5e-5, 7.5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2];

/// Makes the table with `pages` pages, and vacuums it: hint bits are set, and every
/// page is all-visible. Autovacuum leaves it as it is.
///
/// # Errors
///
/// Those of the server.
pub fn create(client: &mut Client, pages: u64) -> Result<(), Error> {
    let rows = pages * ROWS_A_PAGE;
    // One at a time: VACUUM refuses to run in the transaction of a batch.
    for statement in [
        format!(
            "CREATE TABLE {NAME} (id bigint, value bigint) WITH (fillfactor = 50, autovacuum_enabled = off)"
        ),
        format!("INSERT INTO {NAME} SELECT i, i FROM generate_series(1, {rows}) AS i"),
        format!("VACUUM {NAME}"),
    ] {
        client.batch_execute(&statement)?;
    }
    Ok(())
}

/// Updates each row with probability `fraction`, the same rows each time, and writes
/// everything out (CHECKPOINT).
///
/// # Errors
///
/// Those of the server.
pub fn update(client: &mut Client, fraction: f64) -> Result<(), Error> {
    client.batch_execute("SELECT setseed(0)")?;
    client.batch_execute(&format!("UPDATE {NAME} SET value = value + 1 WHERE random() < {fraction}"))?;
    Ok(client.batch_execute("CHECKPOINT")?)
}

/// The files of all forks of the table, below the server's data folder.
///
/// # Errors
///
/// Those of the server and of the file system.
pub fn files(client: &mut Client, data_folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let row = client.query_one("SELECT pg_relation_filepath($1::text::regclass)", &[&NAME])?;
    let first = data_folder.join(row.get::<_, String>(0));
    let node = first.file_name().ok_or("a table without a file")?.to_string_lossy().into_owned();
    let mut files = Vec::new();
    for entry in fs::read_dir(first.parent().ok_or("a file without a folder")?)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(&node);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_'])) {
            files.push(path);
        }
    }
    Ok(files)
}

/// The files of its main fork alone.
///
/// # Errors
///
/// As for [`files`].
pub fn heap_files(client: &mut Client, data_folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = files(client, data_folder)?;
    // Those of the maps are NODE_vm and NODE_fsm.
    files.retain(|path| !path.file_name().unwrap_or_default().to_string_lossy().contains('_'));
    Ok(files)
}

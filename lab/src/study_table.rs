//! The study's table: about 100 rows a page at fillfactor 50, some rows updated.

use std::fs;
use std::path::{Path, PathBuf};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use postgres::Client;

use crate::Error;

/// Rows of two bigints that fit on a page at fillfactor 50.
const ROWS_A_PAGE: u64 = 92;

/// The table's name.
pub const NAME: &str = "study";

/// Makes the table with `pages` pages, vacuums it, and updates each row with
/// probability `fraction`. Autovacuum leaves it as it is.
///
/// # Errors
///
/// Those of the server.
pub fn create(client: &mut Client, pages: u64, fraction: f64) -> Result<(), Error> {
    let rows = pages * ROWS_A_PAGE;
    // One at a time: VACUUM refuses to run in the transaction of a batch.
    for statement in [
        format!(
            "CREATE TABLE {NAME} (id bigint, value bigint) WITH (fillfactor = 50, autovacuum_enabled = off)"
        ),
        format!("INSERT INTO {NAME} SELECT i, i FROM generate_series(1, {rows}) AS i"),
        format!("VACUUM {NAME}"),
        "SELECT setseed(0)".to_string(),
        format!("UPDATE {NAME} SET value = value + 1 WHERE random() < {fraction}"),
        "CHECKPOINT".to_string(),
    ] {
        client.batch_execute(&statement)?;
    }
    Ok(())
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

/// Drops the files from the kernel's cache (posix_fadvise; they must have been
/// written out, as after a checkpoint).
///
/// # Errors
///
/// Those of the file system.
pub fn drop_from_page_cache(files: &[PathBuf]) -> Result<(), Error> {
    for path in files {
        let file = fs::File::open(path)?;
        file.sync_all()?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    }
    Ok(())
}

/// Reads the files once, so that the kernel's cache has them.
///
/// # Errors
///
/// Those of the file system.
pub fn bring_into_page_cache(files: &[PathBuf]) -> Result<(), Error> {
    for path in files {
        std::io::copy(&mut fs::File::open(path)?, &mut std::io::sink())?;
    }
    Ok(())
}

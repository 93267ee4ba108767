//! The study's table: about 100 rows a page at a fillfactor of 50, or what is asked for.

use std::fs;
use std::path::{Path, PathBuf};

use postgres::Client;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The table's name.
pub const NAME: &str = "study";

/// Bytes of a page that tuples and their line pointers can take.
const PAGE_ROOM: u32 = 8192 - 24;
/// Bytes of a line pointer.
const LINE_POINTER: u32 = 4;
/// Bytes of a row without its filler: the tuple's header, id and value, aligned.
const LEAST_TUPLE: u32 = 40;
/// Bytes before the filler's own: the tuple's header, id and value, not aligned.
const BEFORE_FILLER: u32 = 36;
/// The longest filler that has a header of one byte; others take four.
const SHORT_FILLER: u32 = 126;

/// The shape of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Bytes that its main fork shall have.
    pub bytes: u64,
    /// Rows that a page shall have; what alignment allows may differ by some.
    pub rows_a_page: u32,
    /// The storage parameter, in per cent.
    pub fillfactor: u32,
    /// Indexes on the column that updates change.
    pub indexes: u32,
}

impl Table {
    /// The study's, with so many pages.
    pub fn of_the_study(pages: u64) -> Table {
        Table { bytes: 8192 * pages, rows_a_page: 100, fillfactor: 50, indexes: 0 }
    }

    /// Bytes that the tuples of a page may take at this fillfactor.
    fn room(&self) -> u32 {
        PAGE_ROOM - 8192 * (100 - self.fillfactor) / 100
    }

    /// Bytes of a tuple, a multiple of 8, with which the rows of a page are as near as
    /// possible to what is asked for.
    fn tuple(&self) -> u32 {
        let (room, wanted) = (self.room(), self.rows_a_page);
        let larger = (room / wanted).saturating_sub(LINE_POINTER).next_multiple_of(8);
        let distance = |tuple: &u32| (room / (tuple + LINE_POINTER)).abs_diff(wanted);
        let candidates = [larger.saturating_sub(8), larger].into_iter().filter(|tuple| *tuple >= LEAST_TUPLE);
        candidates.min_by_key(distance).unwrap_or(LEAST_TUPLE)
    }

    /// Rows of a full page.
    pub fn actual_rows_a_page(&self) -> u32 {
        self.room() / (self.tuple() + LINE_POINTER)
    }

    /// Rows that make it as large as asked for.
    pub fn rows(&self) -> u64 {
        (self.bytes / 8192).max(1) * u64::from(self.actual_rows_a_page())
    }

    /// What is wrong with it.
    ///
    /// # Errors
    ///
    /// Where a page cannot hold nearly that many rows: the study's "about 100" at a
    /// fillfactor of 50 are 92.
    pub fn check(&self) -> Result<(), Error> {
        let most = self.room() / (LEAST_TUPLE + LINE_POINTER);
        if 10 * self.rows_a_page > 11 * most {
            return Err(format!(
                "at a fillfactor of {} a page holds at most {most} rows, not {}",
                self.fillfactor, self.rows_a_page
            )
            .into());
        }
        Ok(())
    }

    /// Characters that bring a row to its size; None where it has it without.
    fn filler(&self) -> Option<u32> {
        let filler = self.tuple() - BEFORE_FILLER;
        match filler {
            0..=4 => None,
            _ if filler - 1 <= SHORT_FILLER => Some(filler - 1),
            _ => Some(filler - 4),
        }
    }

    /// Makes it, with every page all-visible and hint bits set. Autovacuum leaves it as
    /// it is.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn create(&self, client: &mut Client) -> Result<(), Error> {
        let filler = self.filler().map_or("NULL".into(), |length| format!("repeat('x', {length})"));
        client.batch_execute(&format!(
            "CREATE TABLE {NAME} (id bigint, value int, filler text STORAGE PLAIN)
             WITH (fillfactor = {}, autovacuum_enabled = off)",
            self.fillfactor
        ))?;
        client.batch_execute(&format!(
            "INSERT INTO {NAME} SELECT id, 0, {filler} FROM generate_series(1, {}) AS id",
            self.rows()
        ))?;
        for index in 1..=self.indexes {
            client.batch_execute(&format!("CREATE INDEX {NAME}_{index} ON {NAME} (value)"))?;
        }
        Ok(client.batch_execute(&format!("VACUUM {NAME}"))?)
    }
}

/// The files of all forks of the table and of its indexes, below the server's data folder.
///
/// # Errors
///
/// Those of the server and of the file system.
pub fn files(client: &mut Client, data_folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let relations = client.query(
        "SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = $1::text::regclass
         UNION ALL SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = $1::text::regclass",
        &[&NAME],
    )?;
    let mut files = Vec::new();
    for relation in relations {
        files.extend(files_of(&data_folder.join(relation.get::<_, String>(0)))?);
    }
    Ok(files)
}

/// The files of the table's main fork alone.
///
/// # Errors
///
/// As for [`files`].
pub fn heap_files(client: &mut Client, data_folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let row = client.query_one("SELECT pg_relation_filepath($1::text::regclass)", &[&NAME])?;
    let mut files = files_of(&data_folder.join(row.get::<_, String>(0)))?;
    // Those of the maps are NODE_vm and NODE_fsm.
    files.retain(|path| !path.file_name().unwrap_or_default().to_string_lossy().contains('_'));
    Ok(files)
}

/// All forks and segments of a relation, from the first file of the main fork.
fn files_of(first: &Path) -> Result<Vec<PathBuf>, Error> {
    let node = first.file_name().ok_or("a relation without a file")?.to_string_lossy().into_owned();
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

#[cfg(test)]
mod tests {
    use super::Table;

    fn table(rows_a_page: u32, fillfactor: u32) -> Table {
        Table { rows_a_page, fillfactor, ..Table::of_the_study(131_072) }
    }

    #[test]
    fn rows_take_the_room_of_a_page() {
        assert_eq!(table(100, 50).actual_rows_a_page(), 92);
        assert_eq!(table(184, 100).actual_rows_a_page(), 185);
        assert_eq!(table(20, 100).actual_rows_a_page(), 20);
        assert_eq!(table(1, 100).actual_rows_a_page(), 1);
        assert_eq!(table(100, 50).filler(), None);
        assert_eq!(table(100, 50).rows(), 131_072 * 92);
        table(100, 50).check().unwrap();
        let message = table(100, 40).check().unwrap_err().to_string();
        assert_eq!(message, "at a fillfactor of 40 a page holds at most 73 rows, not 100");
    }
}

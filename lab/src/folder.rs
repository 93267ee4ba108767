//! The folder of a run: whose it is, what it was begun with, and whether the device has
//! room for it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::statvfs::statvfs;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Error;
use crate::study_table::Table;

/// The file that says that a folder is ours.
const MARK: &str = "vacuum-skip-lab.json";

/// What `run` makes beside the results and the report.
const CLUSTERS: [&str; 7] = ["data", "table", "state", "socket", "server.log", "table.json", "state.json"];

/// What is left after `clean`, so that the folder can be run again: what says that it is
/// ours, and the results.
const RESULTS: [&str; 6] = [MARK, "lock", "results.csv", "report.md", "report.html", "charts"];

/// What all runs of a folder have in common: other values would not compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Common {
    /// The table.
    pub table: Table,
    /// Settings of all servers.
    pub settings: Vec<String>,
}

/// A folder that is locked for this process.
pub struct Folder {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Folder {
    /// Takes a folder that is empty, absent, or ours and begun with the same.
    ///
    /// # Errors
    ///
    /// Where it is none of these, or another process has it.
    pub fn take(path: &Path, common: &Common) -> Result<Folder, Error> {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let path = path.canonicalize()?;
        let mark = path.join(MARK);
        if !mark.exists() && fs::read_dir(&path)?.next().is_some() {
            return Err(format!("{} is neither empty nor a folder of vacuum-skip-lab", path.display()).into());
        }
        if !mark.exists() {
            write_json(&mark, common)?;
        }
        let folder = Folder::lock(path)?;
        let begun: Common = read_json(&mark)?;
        if begun != *common {
            return Err(format!(
                "{} was begun with another table or other settings: {}; name another folder, or remove \
                 this one with: vacuum-skip-lab clean --all",
                folder.path.display(),
                fs::read_to_string(&mark)?.trim()
            )
            .into());
        }
        Ok(folder)
    }

    /// Takes a folder that is ours.
    ///
    /// # Errors
    ///
    /// Where it is not, or another process has it.
    pub fn take_ours(path: &Path) -> Result<Folder, Error> {
        let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        if !path.join(MARK).exists() {
            return Err(format!("{} is not a folder of vacuum-skip-lab", path.display()).into());
        }
        Folder::lock(path)
    }

    fn lock(path: PathBuf) -> Result<Folder, Error> {
        let file = File::create(path.join("lock"))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Folder { path, _lock: lock }),
            Err(_) => Err(format!("another vacuum-skip-lab is at work in {}", path.display()).into()),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what `run` made; the results and reports too, where `all`. The folder
    /// itself goes where nothing is left in it.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn clean(self, all: bool) -> Result<(), Error> {
        let results = RESULTS.iter().filter(|_| all);
        for name in CLUSTERS.iter().chain(results) {
            let path = self.path.join(name);
            if path.is_dir() {
                fs::remove_dir_all(&path)?;
            } else if path.exists() {
                fs::remove_file(&path)?;
            }
        }
        // It stays where something is left in it.
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }

    /// Checks that three copies of the table and their WAL fit on the device.
    ///
    /// # Errors
    ///
    /// Where they do not: how much is needed.
    pub fn check_room(&self, table: &Table) -> Result<(), Error> {
        let needed = needed_bytes(table);
        let space = statvfs(&self.path)?;
        let free = space.blocks_available() * space.fragment_size();
        let there = CLUSTERS.iter().map(|name| bytes_below(&self.path.join(name))).sum::<u64>();
        if free + there < needed {
            return Err(format!(
                "{} needs {}, of which {} are there, and {} are free on its file system",
                self.path.display(),
                gigabytes(needed),
                gigabytes(there),
                gigabytes(free)
            )
            .into());
        }
        Ok(())
    }
}

/// The table as it is after VACUUM, as it is measured, and the copy that is vacuumed: each
/// with its indexes, and two with the WAL that modifying it leaves: a full-page image of
/// each page, but hardly more than max_wal_size.
fn needed_bytes(table: &Table) -> u64 {
    const EMPTY_CLUSTER: u64 = 64 << 20;
    const MAX_WAL_SIZE: u64 = 5 << 28;
    const INDEX_ENTRY: u64 = 24;
    let indexes = u64::from(table.indexes) * table.rows() * INDEX_ENTRY;
    let one = table.bytes + table.bytes / 20 + indexes + EMPTY_CLUSTER;
    3 * one + 2 * MAX_WAL_SIZE.min(2 * (table.bytes + indexes) + EMPTY_CLUSTER)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / f64::from(1 << 30))
}

/// What files take; 0 where there is none.
fn bytes_below(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| bytes_below(&entry.path())).sum()
        }
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

/// Writes a file that is whole or not there.
///
/// # Errors
///
/// Those of the file system.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    serde_json::to_writer(&mut file, value)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    // The name, too, is then on the device.
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Reads such a file.
///
/// # Errors
///
/// Where it is not there, or damaged.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::{Common, Folder, needed_bytes};
    use crate::study_table::Table;

    fn common(bytes: u64) -> Common {
        let table = Table { bytes, rows_a_page: 100, fillfactor: 50, indexes: 0 };
        Common { table, settings: Vec::new() }
    }

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lab-folder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn error(result: Result<Folder, crate::Error>) -> String {
        result.err().unwrap().to_string()
    }

    #[test]
    fn a_folder_that_is_not_ours_is_left_alone() {
        let path = path("foreign");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("letter"), "dear").unwrap();
        assert!(
            error(Folder::take(&path, &common(1))).ends_with("neither empty nor a folder of vacuum-skip-lab")
        );
        assert!(error(Folder::take_ours(&path)).ends_with("is not a folder of vacuum-skip-lab"));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_folder_is_taken_again_for_the_same_and_for_nothing_else() {
        let path = path("ours");
        let folder = Folder::take(&path, &common(1)).unwrap();
        assert!(error(Folder::take(&path, &common(1))).contains("another vacuum-skip-lab is at work in"));
        drop(folder);
        assert!(error(Folder::take(&path, &common(2))).contains("was begun with another table"));
        fs::write(path.join("results.csv"), "").unwrap();
        Folder::take(&path, &common(1)).unwrap().clean(false).unwrap();
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "{left:?}");
        drop(Folder::take(&path, &common(1)).unwrap());
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn too_little_room_is_told_before() {
        let path = path("room");
        let folder = Folder::take(&path, &common(1)).unwrap();
        folder.check_room(&common(1 << 20).table).unwrap();
        let error = folder.check_room(&common(1 << 60).table).unwrap_err().to_string();
        assert!(error.contains(" needs 3382286748.3 GB, of which 0.0 GB are there, and "), "{error}");
        assert!(needed_bytes(&common(1 << 30).table) < 6 << 30);
        folder.clean(true).unwrap();
        assert!(!path.exists());
    }
}

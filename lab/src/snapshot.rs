//! Identical physical copies of a stopped cluster.
//!
//! A snapshot is a copy of a data folder. Restoring it makes the data folder equal to
//! it again, byte for byte: everything is compared, and only blocks that differ are
//! written, in place. So each run finds its blocks at the same places of the device,
//! little has to be written out before it, and no clock or size is trusted. It ends
//! with what was written on the device, so that nothing is under way when a run begins.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::page_cache::drop_from_page_cache;

/// Bytes compared at a time.
const CHUNK: usize = 1 << 20;

/// Bytes written where they differ: a block of the server's.
const BLOCK: usize = 8192;

/// A copy of a data folder.
pub struct Snapshot {
    folder: PathBuf,
}

impl Snapshot {
    /// Copies the data folder of a stopped server to `folder`, or makes what is there
    /// equal to it.
    ///
    /// # Errors
    ///
    /// Those of the file system, and where the data folder holds other things than
    /// folders and files, such as tablespaces elsewhere.
    pub fn take(data_folder: &Path, folder: PathBuf) -> Result<Snapshot, Error> {
        mirror(data_folder, &folder)?;
        Ok(Snapshot { folder })
    }

    /// Makes the data folder of a stopped server equal to the snapshot, and returns
    /// the bytes that differed.
    ///
    /// # Errors
    ///
    /// As for [`Snapshot::take`].
    pub fn restore(&self, data_folder: &Path) -> Result<u64, Error> {
        mirror(&self.folder, data_folder)
    }

    /// Drops the snapshot from the kernel's cache, where it would take the room of
    /// the files to be measured. Restoring then has to read it from the device.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn drop_from_page_cache(&self) -> Result<(), Error> {
        drop_from_page_cache(&files_below(&self.folder)?)
    }

    /// The bytes of its files.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn bytes(&self) -> Result<u64, Error> {
        let files = files_below(&self.folder)?;
        Ok(files.iter().map(|file| Ok(fs::metadata(file)?.len())).sum::<io::Result<u64>>()?)
    }
}

/// Makes the folder `to` equal to `from`, and returns the bytes written.
fn mirror(from: &Path, to: &Path) -> Result<u64, Error> {
    if !to.exists() {
        fs::create_dir(to)?;
    }
    take_over_owner(&fs::metadata(from)?, to)?;
    let names = names_in(from)?;
    for extra in names_in(to)?.difference(&names) {
        remove(&to.join(extra))?;
    }
    let mut written = 0;
    for name in &names {
        written += mirror_entry(&from.join(name), &to.join(name))?;
    }
    // So that names that came or went are on the device too.
    File::open(to)?.sync_all()?;
    Ok(written)
}

fn mirror_entry(from: &Path, to: &Path) -> Result<u64, Error> {
    let metadata = fs::symlink_metadata(from)?;
    let there = fs::symlink_metadata(to).ok();
    if there.is_some_and(|there| there.file_type() != metadata.file_type()) {
        remove(to)?;
    }
    if metadata.is_dir() {
        mirror(from, to)
    } else if metadata.is_file() {
        mirror_file(from, &metadata, to)
    } else {
        Err(format!("{} is neither a folder nor a file", from.display()).into())
    }
}

fn mirror_file(from: &Path, metadata: &Metadata, to: &Path) -> Result<u64, Error> {
    let source = File::open(from)?;
    let target = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(to)?;
    take_over_owner(metadata, to)?;
    let resized = target.metadata()?.len() != metadata.len();
    if resized {
        target.set_len(metadata.len())?;
    }
    let written = write_differences(&source, &target, metadata.len())?;
    if resized || written > 0 {
        target.sync_all()?;
    }
    Ok(written)
}

/// Writes the blocks of `source` that differ from those of `target`, both of `length`
/// bytes.
fn write_differences(source: &File, target: &File, length: u64) -> io::Result<u64> {
    let (mut wanted, mut found) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut written = 0;
    let mut offset = 0;
    while offset < length {
        let bytes = CHUNK.min(usize::try_from(length - offset).unwrap_or(CHUNK));
        source.read_exact_at(&mut wanted[..bytes], offset)?;
        target.read_exact_at(&mut found[..bytes], offset)?;
        if wanted[..bytes] != found[..bytes] {
            let blocks = wanted[..bytes].chunks(BLOCK).zip(found[..bytes].chunks(BLOCK));
            for (position, (wanted, _)) in blocks.enumerate().filter(|(_, (wanted, found))| wanted != found) {
                target.write_all_at(wanted, offset + (position * BLOCK) as u64)?;
                written += wanted.len() as u64;
            }
        }
        offset += bytes as u64;
    }
    Ok(written)
}

/// As root, the files belong to the user that the server runs as.
fn take_over_owner(metadata: &Metadata, to: &Path) -> io::Result<()> {
    let there = fs::metadata(to)?;
    if (there.uid(), there.gid()) != (metadata.uid(), metadata.gid()) {
        chown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    if there.mode() != metadata.mode() {
        fs::set_permissions(to, Permissions::from_mode(metadata.mode()))?;
    }
    Ok(())
}

fn names_in(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt, MetadataExt, symlink};

    use super::{BLOCK, CHUNK, Snapshot};

    /// A data folder of a kind, and where its snapshot goes; removed when dropped.
    struct Folders(std::path::PathBuf);

    impl Folders {
        fn new(name: &str) -> Folders {
            let folder = std::env::temp_dir().join(format!("snapshot-{name}-{}", std::process::id()));
            fs::create_dir_all(folder.join("data/base/1")).unwrap();
            fs::write(folder.join("data/PG_VERSION"), "18\n").unwrap();
            let table: Vec<u8> = (0..2 * CHUNK + BLOCK + 100).map(|byte| (byte / 7) as u8).collect();
            fs::write(folder.join("data/base/1/2619"), table).unwrap();
            Folders(folder)
        }

        fn data(&self) -> std::path::PathBuf {
            self.0.join("data")
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot::take(&self.data(), self.0.join("snapshot")).unwrap()
        }
    }

    impl Drop for Folders {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn restoring_writes_the_blocks_that_differ_and_no_others() {
        let folders = Folders::new("blocks");
        let snapshot = folders.snapshot();
        let table = folders.data().join("base/1/2619");
        let before = fs::read(&table).unwrap();
        let inode = fs::metadata(&table).unwrap().ino();
        let file = fs::OpenOptions::new().write(true).open(&table).unwrap();
        for offset in [0, CHUNK - 1, CHUNK + 3 * BLOCK, 2 * CHUNK + BLOCK + 99] {
            file.write_all_at(&[before[offset] ^ 1], offset as u64).unwrap();
        }
        // Three whole blocks, and the last one of 100 bytes.
        assert_eq!(snapshot.restore(&folders.data()).unwrap(), 3 * BLOCK as u64 + 100);
        assert_eq!(fs::read(&table).unwrap(), before);
        assert_eq!(fs::metadata(&table).unwrap().ino(), inode, "the file was replaced");
        assert_eq!(snapshot.restore(&folders.data()).unwrap(), 0);
    }

    #[test]
    fn restoring_brings_back_sizes_names_and_kinds() {
        let folders = Folders::new("names");
        let snapshot = folders.snapshot();
        let data = folders.data();
        let before = fs::read(data.join("base/1/2619")).unwrap();
        fs::write(data.join("base/1/2619"), "short").unwrap();
        fs::remove_file(data.join("PG_VERSION")).unwrap();
        fs::create_dir(data.join("PG_VERSION")).unwrap();
        fs::create_dir_all(data.join("new/folder")).unwrap();
        fs::write(data.join("new/folder/file"), "new").unwrap();
        snapshot.restore(&data).unwrap();
        assert_eq!(fs::read(data.join("base/1/2619")).unwrap(), before);
        assert_eq!(fs::read_to_string(data.join("PG_VERSION")).unwrap(), "18\n");
        assert!(!data.join("new").exists());
        assert_eq!(snapshot.bytes().unwrap(), before.len() as u64 + 3);
    }

    #[test]
    fn a_link_out_of_the_folder_is_refused() {
        let folders = Folders::new("links");
        symlink("/", folders.data().join("pg_tblspc")).unwrap();
        let error = Snapshot::take(&folders.data(), folders.0.join("snapshot")).err().unwrap();
        assert!(error.to_string().ends_with("pg_tblspc is neither a folder nor a file"), "{error}");
    }
}

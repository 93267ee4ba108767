//! The kernel's page cache: files dropped from it, or brought into it.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::unistd::sync;

use crate::Error;

/// Writes the files out and drops them from the kernel's cache (posix_fadvise, which
/// unlike /proc/sys/vm/drop_caches needs no privilege and leaves other files alone).
///
/// # Errors
///
/// Those of the file system.
pub fn drop_from_page_cache(files: &[PathBuf]) -> Result<(), Error> {
    for path in files {
        let file = File::open(path)?;
        // What is dirty would stay.
        file.sync_all()?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    }
    Ok(())
}

/// Drops everything that is clean from the kernel's cache, as only root may, and where
/// /proc can be written.
///
/// # Errors
///
/// Those of the file system.
pub fn drop_everything() -> io::Result<()> {
    sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

/// Reads the files once, so that the kernel's cache has them.
///
/// # Errors
///
/// Those of the file system.
pub fn bring_into_page_cache(files: &[PathBuf]) -> Result<(), Error> {
    for path in files {
        io::copy(&mut File::open(path)?, &mut io::sink())?;
    }
    Ok(())
}

/// Bytes that files could take in memory without others being short of it.
///
/// # Errors
///
/// Where /proc/meminfo does not say.
pub fn available_bytes() -> Result<u64, Error> {
    let memory = fs::read_to_string("/proc/meminfo")?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("/proc/meminfo does not say what is available")?.parse::<u64>()? * 1024)
}

//! What the storage can do, measured by fio past the kernel's cache.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::Error;

#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    read: Reads,
}

#[derive(Deserialize)]
struct Reads {
    iops: f64,
    bw_bytes: f64,
}

/// Random reads of 8 kB a second at queue depth 32 out of `files`, measured for
/// `seconds`; None where fio is not installed.
///
/// # Errors
///
/// Where fio fails, as it does on a file system without direct I/O.
pub fn random_reads_a_second(files: &[PathBuf], seconds: u32) -> Result<Option<f64>, Error> {
    let how = ["--rw=randread", "--bs=8k", "--iodepth=32"];
    Ok(reads(files, seconds, &how)?.map(|reads| reads.iops))
}

/// Bytes a second of reads one after another out of `files`, measured for `seconds`;
/// None where fio is not installed.
///
/// # Errors
///
/// As for [`random_reads_a_second`].
pub fn sequential_bytes_a_second(files: &[PathBuf], seconds: u32) -> Result<Option<f64>, Error> {
    let how = ["--rw=read", "--bs=1M", "--iodepth=4"];
    Ok(reads(files, seconds, &how)?.map(|reads| reads.bw_bytes))
}

fn reads(files: &[PathBuf], seconds: u32, how: &[&str]) -> Result<Option<Reads>, Error> {
    let mut names = OsString::from("--filename=");
    for (position, file) in files.iter().enumerate() {
        if position > 0 {
            names.push(":");
        }
        names.push(file);
    }
    let output = Command::new("fio")
        .args(["--name=reads", "--readonly", "--ioengine=libaio", "--direct=1", "--time_based"])
        .args(how)
        .arg(format!("--runtime={seconds}"))
        .arg("--output-format=json")
        .arg(names)
        .output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        output => output?,
    };
    if !output.status.success() {
        return Err(format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let report: Report = serde_json::from_slice(&output.stdout)?;
    Ok(report.jobs.into_iter().next().map(|job| job.read))
}

//! What the storage can do: random reads, measured by fio.

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
}

/// Random reads of 8 kB a second at queue depth 32, past the kernel's cache, out
/// of `files`, measured for `seconds`; None where fio is not installed.
///
/// # Errors
///
/// Where fio fails, as it does on a file system without direct I/O.
pub fn random_reads_a_second(files: &[PathBuf], seconds: u32) -> Result<Option<f64>, Error> {
    let mut names = OsString::from("--filename=");
    for (position, file) in files.iter().enumerate() {
        if position > 0 {
            names.push(":");
        }
        names.push(file);
    }
    let output = Command::new("fio")
        .args(["--name=random", "--readonly", "--rw=randread", "--bs=8k", "--iodepth=32"])
        .args(["--ioengine=libaio", "--direct=1", "--time_based", "--output-format=json"])
        .arg(format!("--runtime={seconds}"))
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
    Ok(report.jobs.first().map(|job| job.read.iops))
}

//! What the server's processes and the device did between two moments, by the kernel's
//! accounts: /proc/PID/stat, /proc/PID/schedstat, /proc/PID/io, /sys/dev/block; and what
//! others took meanwhile, by /proc/stat.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Sub;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::stat::{major, minor};

use crate::Error;

/// Bytes of a sector, as /sys counts them on any device.
const SECTOR: u64 = 512;

/// What a process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Nanoseconds on a processor.
    pub on_cpu: u64,
    /// Nanoseconds in the queue for one: others had them all.
    pub in_queue: u64,
    /// Nanoseconds on a processor in its own code, to the tick.
    pub user: u64,
    /// Nanoseconds on a processor in the kernel, to the tick.
    pub system: u64,
    /// Bytes that it made the kernel read from the device. Those that the kernel reads
    /// ahead count for who caused it.
    pub read_bytes: u64,
    /// Bytes that it made dirty, to be written by and by.
    pub write_bytes: u64,
}

impl Used {
    /// What a running process has used so far.
    fn of_process(pid: u32) -> Result<Used, Error> {
        let schedule = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Used::parse(&schedule, &stat, &io)
            .ok_or_else(|| format!("/proc/{pid}: {schedule}{stat}{io}is not as expected").into())
    }

    /// Of /proc/PID/schedstat, /proc/PID/stat and /proc/PID/io.
    fn parse(schedule: &str, stat: &str, io: &str) -> Option<Used> {
        let mut times = schedule.split(' ').map_while(|time| time.parse().ok());
        // The 14th and the 15th field; the third is the first one after the command.
        let (_, stat) = stat.rsplit_once(") ")?;
        let mut ticks = stat.split(' ').skip(11).map_while(|ticks| ticks.parse::<u64>().ok());
        let bytes = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
        Some(Used {
            on_cpu: times.next()?,
            in_queue: times.next()?,
            user: ticks.next()? * TICK,
            system: ticks.next()? * TICK,
            read_bytes: bytes("read_bytes: ")?,
            write_bytes: bytes("write_bytes: ")?,
        })
    }

    /// 0 where it was more before: another process had the same id.
    fn since(self, before: Used) -> Used {
        Used {
            on_cpu: self.on_cpu.saturating_sub(before.on_cpu),
            in_queue: self.in_queue.saturating_sub(before.in_queue),
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
        }
    }

    fn plus(self, other: Used) -> Used {
        Used {
            on_cpu: self.on_cpu + other.on_cpu,
            in_queue: self.in_queue + other.in_queue,
            user: self.user + other.user,
            system: self.system + other.system,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
        }
    }
}

/// What the whole device did, for whomever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsed {
    /// Read requests that it completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests that it completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Milliseconds in which it had something to do.
    pub busy: u64,
}

impl DeviceUsed {
    /// Of a line of /sys/dev/block/MAJOR:MINOR/stat.
    fn parse(line: &str) -> Option<DeviceUsed> {
        let counts: Vec<u64> = line.split_whitespace().map_while(|count| count.parse().ok()).collect();
        Some(DeviceUsed {
            reads: *counts.first()?,
            read_bytes: counts.get(2)? * SECTOR,
            writes: *counts.get(4)?,
            write_bytes: counts.get(6)? * SECTOR,
            busy: *counts.get(9)?,
        })
    }
}

impl Sub for DeviceUsed {
    type Output = DeviceUsed;

    fn sub(self, before: DeviceUsed) -> DeviceUsed {
        DeviceUsed {
            reads: self.reads - before.reads,
            read_bytes: self.read_bytes - before.read_bytes,
            writes: self.writes - before.writes,
            write_bytes: self.write_bytes - before.write_bytes,
            busy: self.busy - before.busy,
        }
    }
}

/// Of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processors {
    count: u32,
    /// Ticks in which they were busy, added up.
    busy: u64,
}

/// Nanoseconds of a tick in /proc/stat and /proc/PID/stat: Linux counts in hundredths of a second there,
/// whatever its own clock.
const TICK: u64 = 10_000_000;

impl Processors {
    /// Of the lines of /proc/stat.
    fn parse(statistics: &str) -> Option<Processors> {
        let mut lines = statistics.lines().take_while(|line| line.starts_with("cpu"));
        let ticks: Vec<u64> =
            lines.next()?.split_whitespace().skip(1).map_while(|ticks| ticks.parse().ok()).collect();
        // User, nice, system, idle, iowait, irq, softirq, steal; the rest is among them.
        let busy = [0, 1, 2, 5, 6, 7].iter().map(|field| ticks.get(*field).copied()).sum::<Option<u64>>()?;
        Some(Processors { count: u32::try_from(lines.count()).ok()?, busy })
    }
}

/// The accounts at one moment.
pub struct Accounts {
    moment: Instant,
    processors: Processors,
    processes: BTreeMap<u32, Used>,
    device: Option<DeviceUsed>,
}

/// What was used between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Difference {
    /// By the backend.
    pub backend: Used,
    /// By all processes of the server that lived until the end, the backend among them.
    pub server: Used,
    /// By the device that holds the data folder; None where there is no one device, as
    /// with some file systems.
    pub device: Option<DeviceUsed>,
    /// Nanoseconds that the machine's processors had, added up.
    pub processor_time: u64,
    /// Those of them that went to anything but the server, in hundredths of a second.
    pub taken_by_others: u64,
}

impl Accounts {
    /// Reads the accounts of the server whose data folder it is.
    ///
    /// # Errors
    ///
    /// Where the server is down, or another user's.
    pub fn read(data_folder: &Path) -> Result<Accounts, Error> {
        let postmaster = fs::read_to_string(data_folder.join("postmaster.pid"))?;
        let postmaster: u32 = postmaster.lines().next().unwrap_or_default().trim().parse()?;
        let mut processes = BTreeMap::from([(postmaster, Used::of_process(postmaster)?)]);
        for pid in children(postmaster)? {
            // One that has just ended is no error.
            if let Ok(used) = Used::of_process(pid) {
                processes.insert(pid, used);
            }
        }
        let device = fs::read_to_string(device_statistics(data_folder)?).ok();
        let processors = Processors::parse(&fs::read_to_string("/proc/stat")?);
        Ok(Accounts {
            moment: Instant::now(),
            processors: processors.ok_or("/proc/stat is not as expected")?,
            processes,
            device: device.as_deref().and_then(DeviceUsed::parse),
        })
    }

    /// What was used since an earlier moment.
    ///
    /// # Errors
    ///
    /// Where the backend has ended.
    pub fn since(&self, before: &Accounts, backend: u32) -> Result<Difference, Error> {
        let of_process =
            |(pid, used): (&u32, &Used)| used.since(before.processes.get(pid).copied().unwrap_or_default());
        let own = self.processes.get_key_value(&backend).ok_or("the backend has ended")?;
        let server = self.processes.iter().map(of_process).fold(Used::default(), Used::plus);
        let busy = TICK * (self.processors.busy - before.processors.busy);
        Ok(Difference {
            backend: of_process(own),
            server,
            processor_time: nanoseconds(self.moment - before.moment) * u64::from(self.processors.count),
            taken_by_others: busy.saturating_sub(server.on_cpu),
            device: self.device.zip(before.device).map(|(after, before)| after - before),
        })
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn device_statistics(folder: &Path) -> io::Result<PathBuf> {
    let device = fs::metadata(folder)?.dev();
    Ok(format!("/sys/dev/block/{}:{}/stat", major(device), minor(device)).into())
}

fn children(parent: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if process_status(pid).is_ok_and(|(_, of)| of == parent) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// The state of a process, a letter as ps shows it, and its parent.
pub(crate) fn process_status(pid: u32) -> Result<(char, u32), Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // After the command's name, which may hold anything, in parentheses.
    let (_, rest) = status.rsplit_once(") ").ok_or("/proc/PID/stat has no command")?;
    let mut fields = rest.split(' ');
    let state = fields.next().and_then(|state| state.chars().next());
    let parent = fields.next().and_then(|parent| parent.parse().ok());
    state.zip(parent).ok_or_else(|| format!("/proc/{pid}/stat is not as expected: {status}").into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::{DeviceUsed, Processors, TICK, Used, children, process_status};

    #[test]
    fn a_device_is_read_as_the_kernel_documents_it() {
        let line = "  10 1 32 4   20 2 48 5  0 77 9  0 0 0 0  0 0\n";
        let used = DeviceUsed { reads: 10, read_bytes: 16384, writes: 20, write_bytes: 24576, busy: 77 };
        assert_eq!(DeviceUsed::parse(line), Some(used));
        assert_eq!(DeviceUsed::parse("10 1 32"), None);
    }

    #[test]
    fn busy_time_is_all_but_idling_and_waiting_for_the_device() {
        let statistics = "cpu  1 2 4 800 900 8 16 32 64 128\ncpu0 1 2 4\ncpu1 0 0 0\nintr 5\n";
        assert_eq!(Processors::parse(statistics), Some(Processors { count: 2, busy: 63 }));
        assert_eq!(Processors::parse("intr 5\n"), None);
    }

    #[test]
    fn a_process_that_computes_uses_the_processor() {
        let own = std::process::id();
        // The accounts are those of the process's first thread, which only waits here.
        let before = Used::of_process(own).unwrap();
        // Ends by itself too, should this test not come to end it.
        let busy = "i=0; while [ $i -lt 100000000 ]; do i=$((i + 1)); done";
        let mut child = Command::new("sh").args(["-c", busy]).spawn().unwrap();
        let pid = child.id();
        let started = Instant::now();
        let has_computed = |used: Used| used.on_cpu >= 20_000_000 && used.user >= 2 * TICK;
        while !has_computed(Used::of_process(pid).unwrap()) {
            assert!(started.elapsed() < Duration::from_secs(60), "a minute without 20 ms of computing");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(children(own).unwrap().contains(&pid));
        assert_eq!(process_status(pid).unwrap().1, own);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process_status(pid).is_err());
        let used = Used::of_process(own).unwrap().since(before);
        assert!(used.on_cpu < 1_000_000_000, "{used:?}");
    }

    #[test]
    fn a_process_is_read_as_the_kernel_documents_it() {
        let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        let stat = "7 (a) b) S 1 7 7 0 -1 64 1 2 3 4 30 20 0 0 20 0\n";
        let used = Used {
            on_cpu: 8,
            in_queue: 9,
            user: 30 * TICK,
            system: 20 * TICK,
            read_bytes: 5,
            write_bytes: 6,
        };
        assert_eq!(Used::parse("8 9 10\n", stat, io), Some(used));
        assert_eq!(Used::parse("8\n", stat, io), None);
        assert_eq!(Used::parse("8 9 10\n", "7 (a) S 1\n", io), None);
        assert_eq!(Used::parse("8 9 10\n", stat, "rchar: 1\n"), None);
    }
}

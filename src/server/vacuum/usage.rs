//! What a vacuum used: time, buffers, WAL, processor. For VERBOSE and the log.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use pgrx::pg_sys;

use super::statistics::Timestamp;
use crate::server::raw;

/// Room for pg_rusage.h's PGRUsage, a timeval and a rusage: 160 bytes on Linux, as
/// longs are 8 bytes. Only the server looks into it.
#[repr(C)]
pub struct ResourceUsage([u64; 64]);

/// The counters of this process at one moment.
pub struct UsageMeter {
    started: Timestamp,
    resources: ResourceUsage,
    wal: pg_sys::WalUsage,
    buffers: pg_sys::BufferUsage,
    read_time: i64,
    write_time: i64,
}

/// What was used since then.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Microseconds.
    pub elapsed: i64,
    /// Blocks found in shared or local buffers.
    pub hit: i64,
    /// Blocks read.
    pub read: i64,
    /// Blocks made dirty.
    pub dirtied: i64,
    /// Records of WAL.
    pub wal_records: i64,
    /// Full-page images in WAL.
    pub wal_full_page_images: i64,
    /// Bytes of WAL.
    pub wal_bytes: u64,
    /// How often WAL buffers were full.
    pub wal_buffers_full: i64,
    /// Milliseconds of reading and of writing; None unless track_io_timing is on.
    pub io_times: Option<(f64, f64)>,
    /// Milliseconds of cost-based delay; None unless track_cost_delay_timing is on.
    pub delay: Option<f64>,
    /// Processor and elapsed time, in the server's words.
    pub resources: String,
}

impl UsageMeter {
    /// Begins to count.
    pub fn start() -> Self {
        let mut resources = MaybeUninit::zeroed();
        // SAFETY: the room is enough; the counters are this process's own.
        unsafe {
            raw::pg_rusage_init(resources.as_mut_ptr());
            UsageMeter {
                started: Timestamp::now(),
                resources: resources.assume_init(),
                wal: pg_sys::pgWalUsage,
                buffers: pg_sys::pgBufferUsage,
                read_time: pg_sys::pgStatBlockReadTime,
                write_time: pg_sys::pgStatBlockWriteTime,
            }
        }
    }

    /// When that was.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Whether it was at least `milliseconds` ago.
    pub fn took_at_least(&self, milliseconds: i32) -> bool {
        self.elapsed() >= i64::from(milliseconds) * 1000
    }

    /// Microseconds. Nothing, where the clock was set back meanwhile.
    fn elapsed(&self) -> i64 {
        (Timestamp::now().0 - self.started.0).max(0)
    }

    /// What was used since then.
    pub fn usage(&self) -> Usage {
        // SAFETY: counters and flags of this process.
        let (wal, buffers, read_time, write_time, io_timed) = unsafe {
            (
                pg_sys::pgWalUsage,
                pg_sys::pgBufferUsage,
                pg_sys::pgStatBlockReadTime,
                pg_sys::pgStatBlockWriteTime,
                pg_sys::track_io_timing,
            )
        };
        let both = |counter: fn(&pg_sys::BufferUsage) -> i64| counter(&buffers) - counter(&self.buffers);
        let milliseconds = |microseconds: i64| microseconds as f64 / 1000.0;
        Usage {
            elapsed: self.elapsed(),
            hit: both(|it| it.shared_blks_hit + it.local_blks_hit),
            read: both(|it| it.shared_blks_read + it.local_blks_read),
            dirtied: both(|it| it.shared_blks_dirtied + it.local_blks_dirtied),
            wal_records: wal.wal_records - self.wal.wal_records,
            wal_full_page_images: wal.wal_fpi - self.wal.wal_fpi,
            wal_bytes: wal.wal_bytes - self.wal.wal_bytes,
            wal_buffers_full: wal.wal_buffers_full - self.wal.wal_buffers_full,
            io_times: io_timed.then_some((
                milliseconds(read_time - self.read_time),
                milliseconds(write_time - self.write_time),
            )),
            delay: delay(),
            resources: self.resources(),
        }
    }

    fn resources(&self) -> String {
        // SAFETY: a string in a buffer of the server that is good until the next call.
        let text = unsafe { CStr::from_ptr(raw::pg_rusage_show(&self.resources)) };
        text.to_string_lossy().into_owned()
    }
}

/// Milliseconds that the vacuum slept for cost-based delay, its workers included: the
/// progress view's figure, which outlives the command.
fn delay() -> Option<f64> {
    // SAFETY: this session's own entry of the statistics, and a flag.
    unsafe {
        let entry = pg_sys::MyBEEntry.as_ref().filter(|_| pg_sys::track_cost_delay_timing)?;
        Some(entry.st_progress_param[pg_sys::PROGRESS_VACUUM_DELAY_TIME as usize] as f64 / 1e6)
    }
}

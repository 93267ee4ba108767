//! What a piece of work cost in buffers, as VACUUM VERBOSE counts it.

use pgrx::pg_sys;

/// Buffers used since some moment.
#[derive(Clone, Copy, Debug)]
pub struct BufferUsage {
    /// Blocks found in shared or local buffers.
    pub hit: u64,
    /// Blocks read from the operating system.
    pub read: u64,
    /// Milliseconds spent on waiting for these reads; None unless
    /// track_io_timing is on.
    pub read_time_ms: Option<f64>,
}

/// Remembers the counters of this process at one moment.
pub struct Meter(pg_sys::BufferUsage);

impl Meter {
    /// Begins to count.
    pub fn start() -> Self {
        // SAFETY: a struct of numbers of this single-threaded process.
        Meter(unsafe { pg_sys::pgBufferUsage })
    }

    /// What was used since then.
    pub fn usage(&self) -> BufferUsage {
        // SAFETY: as above; and a flag.
        let (now, timed) = unsafe { (pg_sys::pgBufferUsage, pg_sys::track_io_timing) };
        let then = &self.0;
        let hit = now.shared_blks_hit - then.shared_blks_hit + now.local_blks_hit - then.local_blks_hit;
        let read = now.shared_blks_read - then.shared_blks_read + now.local_blks_read - then.local_blks_read;
        let nanoseconds = now.shared_blk_read_time.ticks - then.shared_blk_read_time.ticks
            + now.local_blk_read_time.ticks
            - then.local_blk_read_time.ticks;
        BufferUsage {
            hit: hit as u64,
            read: read as u64,
            read_time_ms: timed.then_some((nanoseconds / 1000) as f64 / 1e3),
        }
    }
}

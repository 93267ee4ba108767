//! Heap blocks, read one after the other through shared buffers.
//!
//! Two ways, as two generations of VACUUM have read: PostgreSQL 18's read
//! stream (read_stream.c), which combines neighbouring blocks and keeps reads
//! in flight, and PostgreSQL 17's ReadBufferExtended for each block. Both go
//! through a ring of buffers (BAS_VACUUM) of vacuum_buffer_usage_limit, so that
//! the scan does not displace what others keep in shared buffers.

use std::ffi::c_void;
use std::ptr;

use pgrx::pg_sys;

use super::let_go;
use super::relation::HeapRelation;
use super::settings::with_setting;

const INVALID_BLOCK: pg_sys::BlockNumber = pg_sys::InvalidBlockNumber;
/// No buffer.
pub(super) const INVALID_BUFFER: pg_sys::Buffer = pg_sys::InvalidBuffer as pg_sys::Buffer;

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The server's read stream, with reads of its own in flight.
    Stream,
    /// The server's read stream for blocks that the kernel has been told of:
    /// they are on their way already, so each read is a copy out of the
    /// kernel's cache, which would only take longer through an io worker.
    HintedStream,
    /// A call for each block.
    Sync,
}

/// A pin on a block in a buffer, released when dropped.
pub struct PinnedBuffer(pg_sys::Buffer);

impl PinnedBuffer {
    /// The number of the block.
    pub fn block(&self) -> u32 {
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::BufferGetBlockNumber(self.0) }
    }

    /// Hands the pin over to the caller.
    pub(super) fn into_raw(self) -> pg_sys::Buffer {
        let buffer = self.0;
        std::mem::forget(self);
        buffer
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: the pin is ours and is released only here.
        let_go(|| unsafe { pg_sys::ReleaseBuffer(self.0) });
    }
}

/// The page in `buffer`: what the server's macro BufferGetPage computes.
///
/// # Safety
///
/// `buffer` must be pinned, and the page not used after the pin is gone.
pub(super) unsafe fn page_of(buffer: pg_sys::Buffer) -> *const u8 {
    // SAFETY: shared buffers are numbered from 1 up, local ones from -1 down.
    unsafe {
        if buffer > 0 {
            pg_sys::BufferBlocks.cast::<u8>().add((buffer as usize - 1) * pg_sys::BLCKSZ as usize)
        } else {
            (*pg_sys::LocalBufferBlockPointers.add((-buffer) as usize - 1)).cast()
        }
    }
}

/// The ring of buffers that a vacuum reads through.
struct Ring(pg_sys::BufferAccessStrategy);

impl Ring {
    fn new() -> Self {
        // SAFETY: a size of 0 means no ring, for which the server returns null.
        Ring(unsafe {
            pg_sys::GetAccessStrategyWithSize(
                pg_sys::BufferAccessStrategyType::BAS_VACUUM,
                pg_sys::VacuumBufferUsageLimit,
            )
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: made by `new` and freed only here; null is allowed.
        let_go(|| unsafe { pg_sys::FreeAccessStrategy(self.0) });
    }
}

/// Reads the blocks that an iterator asks for, in its order.
pub struct HeapReader<'rel, B> {
    // Dropped in this order: a stream uses the ring.
    source: Source<B>,
    ring: Ring,
    relation: &'rel HeapRelation,
}

/// Who asks the iterator.
enum Source<B> {
    Stream(Stream<B>),
    Sync(B),
}

impl<'rel, B: Iterator<Item = u32> + 'rel> HeapReader<'rel, B> {
    /// A reader of `blocks` of `relation`. A stream asks the iterator
    /// ahead of the block that is returned next.
    pub fn new(relation: &'rel HeapRelation, method: Method, blocks: B) -> Self {
        let ring = Ring::new();
        let source = match method {
            Method::Sync => Source::Sync(blocks),
            Method::Stream => Source::Stream(Stream::begin(relation, &ring, blocks)),
            Method::HintedStream => {
                Source::Stream(without_reads_in_flight(|| Stream::begin(relation, &ring, blocks)))
            }
        };
        HeapReader { source, ring, relation }
    }

    /// The next block, pinned; None at the end.
    pub fn next_buffer(&mut self) -> Option<PinnedBuffer> {
        match &mut self.source {
            Source::Stream(stream) => stream.next_buffer(),
            Source::Sync(blocks) => {
                let block = blocks.next()?;
                // SAFETY: the relation is open; the result is a pin.
                let buffer = unsafe {
                    pg_sys::ReadBufferExtended(
                        self.relation.as_ptr(),
                        pg_sys::ForkNumber::MAIN_FORKNUM,
                        block,
                        pg_sys::ReadBufferMode::RBM_NORMAL,
                        self.ring.0,
                    )
                };
                Some(PinnedBuffer(buffer))
            }
        }
    }

    /// Ends reading and gives the iterator back.
    pub fn finish(self) -> B {
        match self.source {
            Source::Stream(stream) => stream.finish(),
            Source::Sync(blocks) => blocks,
        }
    }
}

/// Begins a stream that does its reads in this process, one at a time, as streams
/// do where they find a concurrency of 0 (read_stream.c). The first setting is
/// for tables, the second for catalogs. A tablespace's own settings go before
/// them, and then the stream keeps reads in flight after all.
fn without_reads_in_flight<T>(begin: impl FnOnce() -> T) -> T {
    with_setting(c"maintenance_io_concurrency", c"0", || {
        with_setting(c"effective_io_concurrency", c"0", begin)
    })
}

/// A read stream of the server, and the blocks that it asks for.
struct Stream<B> {
    stream: *mut pg_sys::ReadStream,
    /// From a box, whose contents the stream's callback changes.
    blocks: *mut B,
}

impl<B: Iterator<Item = u32>> Stream<B> {
    fn begin(relation: &HeapRelation, ring: &Ring, blocks: B) -> Self {
        let blocks = Box::into_raw(Box::new(blocks));
        // SAFETY: relation and ring outlive the stream, see the order of the
        // fields of HeapReader; `next_block` knows the type behind the pointer,
        // which is valid as long as the stream.
        let stream = unsafe {
            pg_sys::read_stream_begin_relation(
                pg_sys::READ_STREAM_MAINTENANCE as i32,
                ring.0,
                relation.as_ptr(),
                pg_sys::ForkNumber::MAIN_FORKNUM,
                Some(next_block::<B>),
                blocks.cast(),
                0,
            )
        };
        Stream { stream, blocks }
    }

    fn next_buffer(&mut self) -> Option<PinnedBuffer> {
        // SAFETY: the stream is open; no data for each buffer was asked for.
        let buffer = unsafe { pg_sys::read_stream_next_buffer(self.stream, ptr::null_mut()) };
        (buffer != INVALID_BUFFER).then(|| PinnedBuffer(buffer))
    }

    fn finish(self) -> B {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: each is done once, here or when dropped; the stream first.
        unsafe {
            pg_sys::read_stream_end(this.stream);
            *Box::from_raw(this.blocks)
        }
    }
}

impl<B> Drop for Stream<B> {
    fn drop(&mut self) {
        // SAFETY: as in `finish`. After an error the server asks no more.
        let_go(|| unsafe { pg_sys::read_stream_end(self.stream) });
        // SAFETY: likewise.
        drop(unsafe { Box::from_raw(self.blocks) });
    }
}

/// The read stream's callback: the next block to read.
///
/// # Safety
///
/// To be called by the server, with the pointer that [`Stream::begin`] gave it.
unsafe extern "C-unwind" fn next_block<B: Iterator<Item = u32>>(
    _stream: *mut pg_sys::ReadStream,
    blocks: *mut c_void,
    _per_buffer_data: *mut c_void,
) -> pg_sys::BlockNumber {
    // SAFETY: the pointer is to a B that nothing else uses while the stream is
    // open; the guard turns a panic into an ERROR of the server. (The attribute
    // `pg_guard` does the same, but not for generic functions.)
    unsafe {
        pg_sys::panic::pgrx_extern_c_guard(|| {
            let blocks = &mut *blocks.cast::<B>();
            blocks.next().unwrap_or(INVALID_BLOCK)
        })
    }
}

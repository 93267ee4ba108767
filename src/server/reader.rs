//! Heap blocks, read one after the other through shared buffers.
//!
//! Two ways, as two generations of VACUUM have read: PostgreSQL 18's read
//! stream (read_stream.c), which combines neighbouring blocks and keeps reads
//! in flight, and PostgreSQL 17's ReadBufferExtended for each block. Both go
//! through a ring of buffers (BAS_VACUUM) of vacuum_buffer_usage_limit, so that
//! the scan does not displace what others keep in shared buffers.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::LazyLock;

use pgrx::pg_sys;

use super::boundary::{callback, guarded};
use super::relation::HeapRelation;
use super::settings::with_setting;
use super::{let_go, raw};

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

/// The ring of buffers that a vacuum reads through (BAS_VACUUM); null for none.
pub struct Strategy {
    ring: Cell<pg_sys::BufferAccessStrategy>,
    own: bool,
}

impl Strategy {
    /// One of vacuum_buffer_usage_limit.
    pub fn new() -> Self {
        // SAFETY: a size of 0 means no ring, for which the server returns null.
        let ring = unsafe {
            pg_sys::GetAccessStrategyWithSize(
                pg_sys::BufferAccessStrategyType::BAS_VACUUM,
                pg_sys::VacuumBufferUsageLimit,
            )
        };
        Strategy { ring: Cell::new(ring), own: true }
    }

    /// One that belongs to the server.
    ///
    /// # Safety
    ///
    /// It must be null or outlive the result.
    pub(super) unsafe fn lent(ring: pg_sys::BufferAccessStrategy) -> Self {
        Strategy { ring: Cell::new(ring), own: false }
    }

    pub(super) fn as_ptr(&self) -> pg_sys::BufferAccessStrategy {
        self.ring.get()
    }

    /// Lets what is read from now on use all of shared buffers. A stream that is open
    /// goes on with the ring: see [`HeapReader::give_up_strategy`].
    pub fn give_up(&self) {
        self.ring.set(ptr::null_mut());
    }
}

impl Drop for Strategy {
    fn drop(&mut self) {
        if self.own {
            // SAFETY: made by `new` and freed only here; null is allowed.
            let_go(|| unsafe { pg_sys::FreeAccessStrategy(self.as_ptr()) });
        }
    }
}

/// What is known of a block that is to be read.
pub trait Block: Copy {
    /// Its number.
    fn number(&self) -> u32;
}

impl Block for u32 {
    fn number(&self) -> u32 {
        *self
    }
}

/// Reads the blocks that an iterator asks for, in its order.
pub struct HeapReader<'rel, B> {
    source: Source<B>,
    strategy: &'rel Strategy,
    relation: &'rel HeapRelation,
}

/// Who asks the iterator.
enum Source<B> {
    Stream(Stream<B>),
    Sync(B),
}

impl<'rel, B: Iterator<Item: Block> + 'rel> HeapReader<'rel, B> {
    /// A reader of `blocks` of `relation`. A stream asks the iterator
    /// ahead of the block that is returned next.
    pub fn new(relation: &'rel HeapRelation, strategy: &'rel Strategy, method: Method, blocks: B) -> Self {
        let source = match method {
            Method::Sync => Source::Sync(blocks),
            Method::Stream => Source::Stream(Stream::begin(relation, strategy, blocks)),
            Method::HintedStream => {
                Source::Stream(without_reads_in_flight(|| Stream::begin(relation, strategy, blocks)))
            }
        };
        HeapReader { source, strategy, relation }
    }

    /// The next block, pinned, and what is known of it; None at the end.
    pub fn next_buffer(&mut self) -> Option<(PinnedBuffer, B::Item)> {
        match &mut self.source {
            Source::Stream(stream) => stream.next_buffer(),
            Source::Sync(blocks) => {
                let block = blocks.next()?;
                let (number, mode) = (block.number(), pg_sys::ReadBufferMode::RBM_NORMAL);
                // SAFETY: the relation is open; the result is a pin.
                let buffer = unsafe {
                    guarded(|| {
                        raw::ReadBufferExtended(
                            self.relation.as_ptr(),
                            pg_sys::ForkNumber::MAIN_FORKNUM,
                            number,
                            mode,
                            self.strategy.as_ptr(),
                        )
                    })
                };
                Some((PinnedBuffer(buffer), block))
            }
        }
    }

    /// Goes on with all of shared buffers.
    pub fn give_up_strategy(&mut self) {
        self.strategy.give_up();
        if let Source::Stream(stream) = &mut self.source {
            stream.give_up_strategy();
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

impl<B: Iterator<Item: Block>> Stream<B> {
    fn begin(relation: &HeapRelation, strategy: &Strategy, blocks: B) -> Self {
        let blocks = Box::into_raw(Box::new(blocks));
        // SAFETY: relation and strategy outlive the stream, see HeapReader;
        // `next_block` knows the type behind the pointer, which is valid as long as
        // the stream, and the size of what it writes for each buffer.
        let stream = unsafe {
            guarded(|| {
                raw::read_stream_begin_relation(
                    pg_sys::READ_STREAM_MAINTENANCE as i32,
                    strategy.as_ptr(),
                    relation.as_ptr(),
                    pg_sys::ForkNumber::MAIN_FORKNUM,
                    next_block::<B>,
                    blocks.cast(),
                    size_of::<B::Item>(),
                )
            })
        };
        Stream { stream, blocks }
    }

    fn next_buffer(&mut self) -> Option<(PinnedBuffer, B::Item)> {
        let mut block: *mut c_void = ptr::null_mut();
        // SAFETY: the stream is open.
        let buffer = unsafe { guarded(|| raw::read_stream_next_buffer(self.stream, &mut block)) };
        if buffer == INVALID_BUFFER {
            return None;
        }
        // SAFETY: `next_block` wrote it for this buffer. The server does not align it.
        let block = unsafe { block.cast::<B::Item>().read_unaligned() };
        Some((PinnedBuffer(buffer), block))
    }

    fn give_up_strategy(&mut self) {
        if let Some(clear) = *CLEAR_STRATEGY {
            // SAFETY: the stream is open.
            unsafe { guarded(|| clear(self.stream)) };
        }
    }

    fn finish(self) -> B {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: each is done once, here or when dropped; the stream first.
        unsafe {
            guarded(|| raw::read_stream_end(this.stream));
            *Box::from_raw(this.blocks)
        }
    }
}

impl<B> Drop for Stream<B> {
    fn drop(&mut self) {
        // SAFETY: as in `finish`. After an error the server asks no more.
        let_go(|| unsafe { guarded(|| raw::read_stream_end(self.stream)) });
        // SAFETY: likewise.
        drop(unsafe { Box::from_raw(self.blocks) });
    }
}

/// The server's `read_stream_clear_strategy`. The first minor versions of PostgreSQL
/// 18 do not have it, and their own vacuums go on with the ring then.
static CLEAR_STRATEGY: LazyLock<Option<ClearStrategy>> = LazyLock::new(|| {
    // SAFETY: the function of that name has this type.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"read_stream_clear_strategy".as_ptr());
        (!function.is_null()).then(|| std::mem::transmute::<*mut c_void, ClearStrategy>(function))
    }
});

type ClearStrategy = unsafe extern "C-unwind" fn(*mut pg_sys::ReadStream);

/// The read stream's callback: the next block to read.
///
/// # Safety
///
/// To be called by the server, with the pointer that [`Stream::begin`] gave it.
unsafe extern "C-unwind" fn next_block<B: Iterator<Item: Block>>(
    _stream: *mut pg_sys::ReadStream,
    blocks: *mut c_void,
    known: *mut c_void,
) -> pg_sys::BlockNumber {
    // SAFETY: the pointer is to a B that nothing else uses while the stream is
    // open; `known` has room for what is known of a block.
    unsafe {
        callback(|| match (*blocks.cast::<B>()).next() {
            Some(block) => {
                known.cast::<B::Item>().write_unaligned(block);
                block.number()
            }
            None => INVALID_BLOCK,
        })
    }
}

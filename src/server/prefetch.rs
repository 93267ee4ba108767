//! Hints about the blocks that will be read soon: to the kernel about those that
//! are not in shared buffers, to the processor about those that are.
//!
//! The read stream keeps as many reads in flight as there are io workers, few
//! by default. Told of the blocks well ahead, the kernel keeps the device
//! busy. The idea is bufmgr.c's `PrefetchSharedBuffer`, but for runs of blocks:
//! one posix_fadvise for neighbours. And since it has to find out which blocks are
//! in shared buffers already, it can have their pages on the way into the
//! processor's cache by the time they are looked at, which otherwise is most of
//! the time of a scan in shared buffers.

use std::mem::offset_of;

use pgrx::pg_sys;

use super::boundary::guarded;
use super::interrupts::check_for_interrupts;
use super::raw;
use super::relation::HeapRelation;

/// Where in shared buffers a block was when it was looked up. It may have been
/// replaced since: this is good for hints and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident(Option<u32>);

impl Resident {
    /// Asks for what is needed to find out what is on the page: the buffer's
    /// descriptor and the page's header.
    pub fn expect_header(self) {
        if let Some(page) = self.page() {
            // SAFETY: there are as many descriptors as buffers.
            let descriptor = unsafe { pg_sys::BufferDescriptors.add(page.index) };
            fetch_lines(descriptor.cast(), 0, size_of::<pg_sys::BufferDescPadded>());
            fetch_lines(page.bytes, 0, 1);
        }
    }

    /// Asks for the line pointers and the tuples. Meant for after
    /// [`Resident::expect_header`].
    pub fn expect_tuples(self) {
        if let Some(page) = self.page() {
            let word = |offset: usize| {
                // SAFETY: within the page, which may change meanwhile.
                let value = unsafe { page.bytes.add(offset).cast::<u16>().read_volatile() };
                usize::from(value).min(pg_sys::BLCKSZ as usize)
            };
            fetch_lines(page.bytes, 0, word(offset_of!(pg_sys::PageHeaderData, pd_lower)));
            fetch_lines(
                page.bytes,
                word(offset_of!(pg_sys::PageHeaderData, pd_upper)),
                pg_sys::BLCKSZ as usize,
            );
        }
    }

    fn page(self) -> Option<ResidentPage> {
        let index = self.0? as usize;
        // SAFETY: a buffer of that number exists as long as the server runs.
        let bytes = unsafe { pg_sys::BufferBlocks.cast::<u8>().add(index * pg_sys::BLCKSZ as usize) };
        Some(ResidentPage { index, bytes })
    }
}

/// The memory of a shared buffer, whatever is in it.
struct ResidentPage {
    index: usize,
    bytes: *const u8,
}

/// Asks the processor for the cache lines of `from` to `to` (in bytes).
fn fetch_lines(start: *const u8, from: usize, to: usize) {
    const LINE: usize = 64;
    for offset in (from - from % LINE..to).step_by(LINE) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction that never faults.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (start, offset);
    }
}

/// Gives hints about the blocks of a relation.
pub struct Prefetcher<'rel> {
    relation: &'rel HeapRelation,
}

impl<'rel> Prefetcher<'rel> {
    /// None where hints mean nothing: for blocks in local buffers, with direct
    /// I/O, which goes past the kernel's cache, and where
    /// maintenance_io_concurrency is 0.
    pub fn new(relation: &'rel HeapRelation) -> Option<Self> {
        // SAFETY: a flag of this process, and a look-up by OID, for which
        // InvalidOid means the database's tablespace.
        let wanted = unsafe {
            pg_sys::io_direct_flags & pg_sys::IO_DIRECT_DATA as i32 == 0
                && pg_sys::get_tablespace_maintenance_io_concurrency(relation.tablespace()) > 0
        };
        (wanted && !relation.is_temporary()).then_some(Prefetcher { relation })
    }

    /// Tells the kernel that as many blocks as `places` has, from `first_block`
    /// on, will be read, save those that are in shared buffers now: their
    /// places are filled in.
    pub fn hint(&self, first_block: u32, places: &mut [Resident]) {
        // Many hints may be given before the first block is read, and each may
        // have to wait for a busy device.
        check_for_interrupts();
        // SAFETY: the relation is open. The closure owns nothing that would
        // need dropping, so an ERROR may jump over it.
        unsafe {
            let smgr = pg_sys::RelationGetSmgr(self.relation.as_ptr());
            let end = first_block + places.len() as u32;
            guarded(|| {
                let mut absent = 0;
                for (place, block) in places.iter_mut().zip(first_block..) {
                    *place = find(smgr, block);
                    if place.0.is_none() {
                        absent += 1;
                    } else {
                        announce(smgr, block - absent, absent);
                        absent = 0;
                    }
                }
                announce(smgr, end - absent, absent);
            });
        }
    }
}

/// Tells the kernel of a run of blocks, none of which is in shared buffers.
///
/// # Safety
///
/// `smgr` must be open. The server may raise an ERROR in here, so nothing on
/// this frame may need dropping.
unsafe fn announce(smgr: pg_sys::SMgrRelation, first_block: u32, blocks: u32) {
    if blocks > 0 {
        // SAFETY: as the caller promises.
        unsafe { raw::smgrprefetch(smgr, pg_sys::ForkNumber::MAIN_FORKNUM, first_block, blocks as i32) };
    }
}

/// Where in shared buffers a block of the main fork is now.
///
/// # Safety
///
/// As [`announce`].
unsafe fn find(smgr: pg_sys::SMgrRelation, block: u32) -> Resident {
    // SAFETY: the lock of the partition is held while its table is looked at,
    // and released in the same way as the server does. The look-up itself
    // cannot raise an error.
    unsafe {
        let locator = (*smgr).smgr_rlocator.locator;
        let mut tag = pg_sys::BufferTag {
            spcOid: locator.spcOid,
            dbOid: locator.dbOid,
            relNumber: locator.relNumber,
            forkNum: pg_sys::ForkNumber::MAIN_FORKNUM,
            blockNum: block,
        };
        let hash = raw::BufTableHashCode(&mut tag);
        let partition = hash % pg_sys::NUM_BUFFER_PARTITIONS;
        let lock = pg_sys::MainLWLockArray.add((pg_sys::BUFFER_MAPPING_LWLOCK_OFFSET + partition) as usize);
        let lock = &raw mut (*lock).lock;
        raw::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let buffer = raw::BufTableLookup(&mut tag, hash);
        raw::LWLockRelease(lock);
        Resident(u32::try_from(buffer).ok())
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use super::*;

    fn open(table: &str) -> HeapRelation {
        let query = format!("SELECT '{table}'::regclass::oid");
        HeapRelation::open(Spi::get_one::<pg_sys::Oid>(&query).unwrap().unwrap()).unwrap()
    }

    #[pg_test]
    fn test_blocks_in_shared_buffers_are_found() {
        Spi::run("CREATE TABLE resident AS SELECT i, repeat('x', 1000) FROM generate_series(1, 100) AS i")
            .unwrap();
        let relation = open("resident");
        let pages = relation.pages();
        let mut places = vec![Resident::default(); pages as usize + 2];
        Prefetcher::new(&relation).unwrap().hint(0, &mut places);

        let (table, beyond) = places.split_at(pages as usize);
        for (block, place) in (0..).zip(table) {
            let page = place.page().expect("a page just written is in shared buffers");
            // SAFETY: a buffer of that number exists.
            let tag = unsafe { (*pg_sys::BufferDescriptors.add(page.index)).bufferdesc.tag };
            assert_eq!(tag.blockNum, block);
            assert_eq!(tag.relNumber, unsafe {
                // SAFETY: the relation is open.
                (*relation.as_ptr()).rd_locator.relNumber
            });
            place.expect_header();
            place.expect_tuples();
        }
        assert!(beyond.iter().all(|place| place.page().is_none()), "there are no blocks beyond the end");
    }

    #[pg_test]
    fn test_no_hints_where_they_mean_nothing() {
        Spi::run("CREATE TABLE plain (i int); CREATE TEMP TABLE local (i int)").unwrap();
        assert!(Prefetcher::new(&open("plain")).is_some());
        assert!(Prefetcher::new(&open("local")).is_none());
        Spi::run("SET LOCAL maintenance_io_concurrency = 0").unwrap();
        assert!(Prefetcher::new(&open("plain")).is_none());
    }
}

//! Hints to the kernel about the blocks that will be read soon.
//!
//! The read stream keeps as many reads in flight as there are io workers, few
//! by default. Told of the blocks well ahead, the kernel keeps the device
//! busy. The idea is bufmgr.c's `PrefetchSharedBuffer`, but for runs of blocks:
//! one posix_fadvise for neighbours.

use pgrx::pg_sys;

use super::relation::HeapRelation;

/// As in [`super::page`]: without pgrx's wrapper, to be called only within
/// `pg_guard_ffi_boundary`, in code that has nothing to drop.
mod raw {
    use pgrx::pg_sys;

    #[allow(clashing_extern_declarations)]
    unsafe extern "C-unwind" {
        pub fn BufTableHashCode(tag: *mut pg_sys::BufferTag) -> u32;
        pub fn BufTableLookup(tag: *mut pg_sys::BufferTag, hash: u32) -> std::ffi::c_int;
        pub fn LWLockAcquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
        pub fn LWLockRelease(lock: *mut pg_sys::LWLock);
        pub fn smgrprefetch(
            smgr: pg_sys::SMgrRelation,
            fork: pg_sys::ForkNumber::Type,
            block: pg_sys::BlockNumber,
            blocks: std::ffi::c_int,
        ) -> bool;
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

    /// Tells the kernel that `blocks` blocks from `first_block` on will be
    /// read, save those that are in shared buffers now.
    pub fn hint(&self, first_block: u32, blocks: u32) {
        // SAFETY: the relation is open. The closure owns nothing that would
        // need dropping, so an ERROR may jump over it.
        unsafe {
            let smgr = pg_sys::RelationGetSmgr(self.relation.as_ptr());
            pg_sys::ffi::pg_guard_ffi_boundary(|| hint_absent(smgr, first_block, blocks));
        }
    }
}

/// # Safety
///
/// `smgr` must be open. The server may raise an ERROR in here, so nothing on
/// this frame may need dropping.
unsafe fn hint_absent(smgr: pg_sys::SMgrRelation, first_block: u32, blocks: u32) {
    let end = first_block + blocks;
    let mut block = first_block;
    while block < end {
        // SAFETY: as the caller promises.
        unsafe {
            let mut run_end = block;
            while run_end < end && !is_in_shared_buffers(smgr, run_end) {
                run_end += 1;
            }
            if run_end > block {
                let run = (run_end - block) as i32;
                raw::smgrprefetch(smgr, pg_sys::ForkNumber::MAIN_FORKNUM, block, run);
            }
            // The block at `run_end` is in shared buffers, or beyond the end.
            block = run_end + 1;
        }
    }
}

/// Whether a block of the main fork is in shared buffers now.
///
/// # Safety
///
/// As [`hint_absent`].
unsafe fn is_in_shared_buffers(smgr: pg_sys::SMgrRelation, block: u32) -> bool {
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
        buffer >= 0
    }
}

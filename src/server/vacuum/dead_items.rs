//! The dead items that phase I found: where they are kept, and their way back.
//!
//! In a TID store of this process or, where indexes are vacuumed in parallel, in
//! one that the workers share (vacuumparallel.c).

use pgrx::pg_sys;

use super::indexes::Indexes;
use super::request::work_mem;
use crate::server::boundary::guarded;
use crate::server::let_go;
use crate::server::raw;
use crate::server::reader::{Block, Strategy};
use crate::server::relation::HeapRelation;

/// Dead items by block.
pub struct DeadItems {
    store: *mut pg_sys::TidStore,
    info: *mut pg_sys::VacDeadItemsInfo,
    /// Null where one process vacuums all indexes.
    parallel: *mut pg_sys::ParallelVacuumState,
}

impl DeadItems {
    /// An empty store of at most maintenance_work_mem or autovacuum_work_mem.
    pub fn new() -> Self {
        let max_bytes = work_mem() as usize * 1024;
        // SAFETY: both in this process's current memory context, which outlives the vacuum.
        let (store, info) = unsafe {
            guarded(|| {
                let info = raw::palloc(size_of::<pg_sys::VacDeadItemsInfo>()).cast();
                *info = pg_sys::VacDeadItemsInfo { max_bytes, num_items: 0 };
                (raw::TidStoreCreateLocal(max_bytes, true), info)
            })
        };
        DeadItems { store, info, parallel: std::ptr::null_mut() }
    }

    /// An empty store shared by up to `workers` workers, 0 for as many as fit; None
    /// where it turns out that no worker would have anything to do.
    pub fn shared(
        relation: &HeapRelation,
        indexes: &Indexes,
        workers: i32,
        verbose: bool,
        strategy: &Strategy,
    ) -> Option<Self> {
        let elevel = if verbose { pg_sys::INFO } else { pg_sys::DEBUG2 } as i32;
        // SAFETY: relation and indexes are open.
        let parallel = unsafe {
            guarded(|| {
                raw::parallel_vacuum_init(
                    relation.as_ptr(),
                    indexes.as_ptr(),
                    indexes.len() as i32,
                    workers,
                    work_mem(),
                    elevel,
                    strategy.as_ptr(),
                )
            })
        };
        if parallel.is_null() {
            return None;
        }
        let mut items = DeadItems { store: std::ptr::null_mut(), info: std::ptr::null_mut(), parallel };
        items.find_shared();
        Some(items)
    }

    fn find_shared(&mut self) {
        // SAFETY: the parallel state is there until `finish`.
        self.store =
            unsafe { guarded(|| raw::parallel_vacuum_get_dead_items(self.parallel, &mut self.info)) };
    }

    /// Whether workers share it.
    pub fn is_parallel(&self) -> bool {
        !self.parallel.is_null()
    }

    /// How many there are now.
    pub fn count(&self) -> i64 {
        // SAFETY: valid as long as self.
        unsafe { (*self.info).num_items }
    }

    /// How many bytes they may take.
    pub fn max_bytes(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.info).max_bytes }
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        // SAFETY: as above; it only looks at sizes.
        unsafe { raw::TidStoreMemoryUsage(self.store) }
    }

    /// Whether there is no room for those of another page.
    pub fn is_full(&self) -> bool {
        self.count() > 0 && self.bytes() > self.max_bytes()
    }

    /// Adds those of `block`, in rising order.
    pub fn add(&mut self, block: u32, offsets: &[u16]) {
        // SAFETY: the store only reads the offsets.
        unsafe {
            let offsets_ptr = offsets.as_ptr().cast_mut();
            guarded(|| {
                raw::TidStoreSetBlockOffsets(self.store, block, offsets_ptr, offsets.len() as i32);
            });
            (*self.info).num_items += offsets.len() as i64;
        }
    }

    /// Adds what pruning found on `block`.
    pub fn add_pruned(&mut self, block: u32, freezing: &mut super::freezing::Freezing) {
        let count = freezing.result.lpdead_items as usize;
        let offsets = &mut freezing.result.deadoffsets[..count];
        // Pruning collects them chain by chain.
        offsets.sort_unstable();
        self.add(block, offsets);
    }

    /// Forgets them all.
    pub fn reset(&mut self) {
        // SAFETY: as above; nobody iterates.
        unsafe {
            if self.is_parallel() {
                guarded(|| raw::parallel_vacuum_reset_dead_items(self.parallel));
                self.find_shared();
            } else {
                let max_bytes = self.max_bytes();
                guarded(|| raw::TidStoreDestroy(self.store));
                self.store = guarded(|| raw::TidStoreCreateLocal(max_bytes, true));
                (*self.info).num_items = 0;
            }
        }
    }

    /// Has the workers delete them from all indexes.
    pub fn delete_from_all_indexes(&self, table_tuples: f64, index_scans: u32) {
        // SAFETY: as above.
        unsafe {
            guarded(|| {
                raw::parallel_vacuum_bulkdel_all_indexes(
                    self.parallel,
                    table_tuples as i64,
                    index_scans as i32,
                );
            });
        }
    }

    /// Has the workers clean up all indexes.
    pub fn clean_up_all_indexes(&self, table_tuples: f64, index_scans: u32, estimated: bool) {
        // SAFETY: as above.
        unsafe {
            guarded(|| {
                raw::parallel_vacuum_cleanup_all_indexes(
                    self.parallel,
                    table_tuples as i64,
                    index_scans as i32,
                    estimated,
                );
            });
        }
    }

    /// The blocks that have some, in rising order.
    pub fn blocks(&self) -> DeadBlocks<'_> {
        // SAFETY: nobody changes the store while it is borrowed.
        let iterator = unsafe { guarded(|| raw::TidStoreBeginIterate(self.store)) };
        DeadBlocks { iterator, _items: std::marker::PhantomData }
    }

    /// Ends parallelism, if there was any: what the indexes' statistics are is known
    /// to this process from then on.
    pub fn finish(self, indexes: &mut Indexes) {
        if self.is_parallel() {
            // SAFETY: done once; there is a place for each index.
            unsafe { guarded(|| raw::parallel_vacuum_end(self.parallel, indexes.statistics_ptr())) };
        }
    }

    pub(super) fn as_ptrs(&self) -> (*mut pg_sys::TidStore, *mut pg_sys::VacDeadItemsInfo) {
        (self.store, self.info)
    }
}

/// Iterates over the blocks that have dead items.
pub struct DeadBlocks<'items> {
    iterator: *mut pg_sys::TidStoreIter,
    _items: std::marker::PhantomData<&'items DeadItems>,
}

/// A block that has dead items; good as long as the items are not forgotten.
#[derive(Clone, Copy)]
pub struct DeadBlock(pg_sys::TidStoreIterResult);

impl Block for DeadBlock {
    fn number(&self) -> u32 {
        self.0.blkno
    }
}

impl Iterator for DeadBlocks<'_> {
    type Item = DeadBlock;

    fn next(&mut self) -> Option<DeadBlock> {
        // SAFETY: the iteration has begun and not ended.
        let result = unsafe { guarded(|| raw::TidStoreIterateNext(self.iterator)) };
        // SAFETY: null or a result, which may be copied.
        unsafe { result.as_ref() }.map(|result| DeadBlock(*result))
    }
}

impl Drop for DeadBlocks<'_> {
    fn drop(&mut self) {
        // SAFETY: ended only here.
        let_go(|| unsafe { guarded(|| raw::TidStoreEndIterate(self.iterator)) });
    }
}

impl DeadBlock {
    /// Puts its dead items into `offsets`, in rising order.
    pub fn read_offsets(mut self, offsets: &mut Vec<u16>) {
        offsets.resize(pg_sys::MaxOffsetNumber as usize, 0);
        // SAFETY: the store is not changed while blocks of it are around. It has
        // room for all numbers that there can be.
        let count = unsafe {
            guarded(|| raw::TidStoreGetBlockOffsets(&mut self.0, offsets.as_mut_ptr(), offsets.len() as i32))
        };
        offsets.truncate(count as usize);
    }
}

//! The indexes of a relation under vacuum.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::dead_items::DeadItems;
use crate::server::boundary::guarded;
use crate::server::let_go;
use crate::server::raw;
use crate::server::reader::Strategy;
use crate::server::relation::HeapRelation;

/// All indexes of a relation, open under RowExclusiveLock; closed when dropped, the
/// locks staying until the transaction ends.
pub struct Indexes<'rel> {
    heap: &'rel HeapRelation,
    relations: *mut pg_sys::Relation,
    names: Vec<String>,
    statistics: Vec<*mut pg_sys::IndexBulkDeleteResult>,
}

/// What is known of an index after it was vacuumed or cleaned up.
#[derive(Clone, Copy, Debug)]
pub struct IndexPages {
    /// Pages in total.
    pub total: u32,
    /// Deleted by this vacuum.
    pub newly_deleted: u32,
    /// Deleted.
    pub deleted: u32,
    /// Free for use.
    pub free: u32,
}

impl<'rel> Indexes<'rel> {
    /// Opens those of `heap`.
    pub fn open(heap: &'rel HeapRelation) -> Self {
        let (mut count, mut relations) = (0, std::ptr::null_mut());
        let lock = pg_sys::RowExclusiveLock as i32;
        // SAFETY: the relation is open; the results are written before they are read.
        unsafe {
            guarded(|| raw::vac_open_indexes(heap.as_ptr(), lock, &mut count, &mut relations));
        }
        let mut indexes = Indexes {
            heap,
            relations,
            names: Vec::new(),
            statistics: vec![std::ptr::null_mut(); count as usize],
        };
        indexes.names = (0..indexes.len()).map(|index| indexes.name_of(index)).collect();
        indexes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.statistics.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.statistics.is_empty()
    }

    /// The name of an index.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    fn name_of(&self, index: usize) -> String {
        // SAFETY: the index is open; a name ends with a zero byte.
        let name = unsafe { CStr::from_ptr((*(*self.relation(index)).rd_rel).relname.data.as_ptr()) };
        name.to_string_lossy().into_owned()
    }

    fn relation(&self, index: usize) -> pg_sys::Relation {
        assert!(index < self.len());
        // SAFETY: there are that many.
        unsafe { *self.relations.add(index) }
    }

    /// What is known of an index; None before anything was done to it, and where its
    /// access method keeps no account.
    pub fn pages(&self, index: usize) -> Option<IndexPages> {
        // SAFETY: null or a result of the access method.
        let result = unsafe { self.statistics[index].as_ref() }?;
        Some(IndexPages {
            total: result.num_pages,
            newly_deleted: result.pages_newly_deleted,
            deleted: result.pages_deleted,
            free: result.pages_free,
        })
    }

    fn info(
        &self,
        index: usize,
        tuples: f64,
        estimated: bool,
        strategy: &Strategy,
    ) -> pg_sys::IndexVacuumInfo {
        pg_sys::IndexVacuumInfo {
            index: self.relation(index),
            heaprel: self.heap.as_ptr(),
            analyze_only: false,
            report_progress: false,
            estimated_count: estimated,
            message_level: pg_sys::DEBUG2 as i32,
            num_heap_tuples: tuples,
            strategy: strategy.as_ptr(),
        }
    }

    /// Deletes the entries of an index that point to `dead_items`. `table_tuples` is
    /// what the table is estimated to have.
    pub fn delete_dead_items(
        &mut self,
        index: usize,
        dead_items: &DeadItems,
        table_tuples: f64,
        strategy: &Strategy,
    ) {
        let mut info = self.info(index, table_tuples, true, strategy);
        let before = self.statistics[index];
        let (store, items) = dead_items.as_ptrs();
        // SAFETY: index and store are open; the statistics are null or of a former call.
        self.statistics[index] =
            unsafe { guarded(|| raw::vac_bulkdel_one_index(&mut info, before, store, items)) };
    }

    /// Ends the vacuum of an index.
    pub fn clean_up(&mut self, index: usize, table_tuples: f64, estimated: bool, strategy: &Strategy) {
        let mut info = self.info(index, table_tuples, estimated, strategy);
        let before = self.statistics[index];
        // SAFETY: as above.
        self.statistics[index] = unsafe { guarded(|| raw::vac_cleanup_one_index(&mut info, before)) };
    }

    /// Enters sizes and numbers of entries into pg_class, where they are exact.
    pub fn update_pg_class(&self) {
        for index in 0..self.len() {
            // SAFETY: null or a result of the access method; the index is open.
            unsafe {
                let Some(result) = self.statistics[index].as_ref().filter(|it| !it.estimated_count) else {
                    continue;
                };
                let relation = self.relation(index);
                guarded(|| {
                    raw::vac_update_relstats(
                        relation,
                        result.num_pages,
                        result.num_index_tuples,
                        0,
                        0,
                        false,
                        pg_sys::InvalidTransactionId,
                        pg_sys::MultiXactId::INVALID,
                        std::ptr::null_mut(),
                        std::ptr::null_mut(),
                        false,
                    );
                });
            }
        }
    }

    /// Closes them. What is known of them stays.
    pub fn close(&mut self) {
        if !self.relations.is_null() {
            let lock = pg_sys::NoLock as i32;
            // SAFETY: closed once, and not used any more.
            unsafe { guarded(|| raw::vac_close_indexes(self.len() as i32, self.relations, lock)) };
            self.relations = std::ptr::null_mut();
        }
    }

    pub(super) fn as_ptr(&self) -> *mut pg_sys::Relation {
        self.relations
    }

    pub(super) fn statistics_ptr(&mut self) -> *mut *mut pg_sys::IndexBulkDeleteResult {
        self.statistics.as_mut_ptr()
    }
}

impl Drop for Indexes<'_> {
    fn drop(&mut self) {
        let_go(|| self.close());
    }
}

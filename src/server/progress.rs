//! A row in pg_stat_progress_vacuum.

use pgrx::pg_sys;

use super::{let_go, raw};

/// Reports the first phase of a vacuum, "scanning heap", until dropped. Reports
/// nothing within a command that reports its own progress, such as COPY: a
/// session has a single row for all of them.
pub struct HeapScanProgress {
    reports: bool,
}

impl HeapScanProgress {
    /// Begins to report a scan of `rel_pages` blocks of `relation`.
    pub fn start(relation: pg_sys::Oid, rel_pages: u32) -> Self {
        const NONE: pg_sys::ProgressCommandType::Type = pg_sys::ProgressCommandType::PROGRESS_COMMAND_INVALID;
        // SAFETY: this session's own entry of the statistics, if it has one.
        let reports = unsafe { pg_sys::MyBEEntry.as_ref() }.is_some_and(|it| it.st_progress_command == NONE);
        if reports {
            let command = pg_sys::ProgressCommandType::PROGRESS_COMMAND_VACUUM;
            // SAFETY: as above.
            unsafe { pg_sys::pgstat_progress_start_command(command, relation) };
        }
        let progress = HeapScanProgress { reports };
        progress.set(pg_sys::PROGRESS_VACUUM_TOTAL_HEAP_BLKS, i64::from(rel_pages));
        progress.set(pg_sys::PROGRESS_VACUUM_PHASE, i64::from(pg_sys::PROGRESS_VACUUM_PHASE_SCAN_HEAP));
        progress
    }

    /// All blocks before `block` are done with.
    pub fn reached(&self, block: u32) {
        self.set(pg_sys::PROGRESS_VACUUM_HEAP_BLKS_SCANNED, i64::from(block));
    }

    /// `items` dead item identifiers were found up to now.
    pub fn found_dead_items(&self, items: u64) {
        self.set(pg_sys::PROGRESS_VACUUM_NUM_DEAD_ITEM_IDS, items as i64);
    }

    fn set(&self, index: u32, value: i64) {
        if self.reports {
            // SAFETY: as above; the index is one of the command's.
            unsafe { pg_sys::pgstat_progress_update_param(index as i32, value) };
        }
    }
}

impl Drop for HeapScanProgress {
    fn drop(&mut self) {
        if self.reports {
            // SAFETY: as above; after an error the server ends it itself.
            let_go(|| unsafe { pg_sys::pgstat_progress_end_command() });
        }
    }
}

/// Reports all phases of a vacuum, from [`VacuumProgress::start`] to
/// [`VacuumProgress::end`]. After an error the server ends it itself.
pub struct VacuumProgress(());

impl VacuumProgress {
    /// Begins to report a vacuum of `relation`.
    pub fn start(relation: pg_sys::Oid) -> Self {
        let command = pg_sys::ProgressCommandType::PROGRESS_COMMAND_VACUUM;
        // SAFETY: this session's own entry of the statistics.
        unsafe { pg_sys::pgstat_progress_start_command(command, relation) };
        VacuumProgress(())
    }

    /// Ends it.
    pub fn end(&self) {
        // SAFETY: as above.
        unsafe { pg_sys::pgstat_progress_end_command() };
    }

    /// Phase I begins, for `rel_pages` blocks, with room for `max_bytes` of dead items.
    pub fn scans_heap(&self, rel_pages: u32, max_bytes: usize) {
        self.set_all([
            (pg_sys::PROGRESS_VACUUM_PHASE, pg_sys::PROGRESS_VACUUM_PHASE_SCAN_HEAP.into()),
            (pg_sys::PROGRESS_VACUUM_TOTAL_HEAP_BLKS, rel_pages.into()),
            (pg_sys::PROGRESS_VACUUM_MAX_DEAD_TUPLE_BYTES, max_bytes as i64),
        ]);
    }

    /// Phase I goes on.
    pub fn scans_heap_again(&self) {
        self.enter(pg_sys::PROGRESS_VACUUM_PHASE_SCAN_HEAP);
    }

    /// Phase I reached `block`.
    #[inline]
    pub fn scanned(&self, block: u32) {
        self.set(pg_sys::PROGRESS_VACUUM_HEAP_BLKS_SCANNED, block.into());
    }

    /// There are `count` dead items, which take `bytes` bytes.
    pub fn has_dead_items(&self, count: i64, bytes: usize) {
        self.set_all([
            (pg_sys::PROGRESS_VACUUM_NUM_DEAD_ITEM_IDS, count),
            (pg_sys::PROGRESS_VACUUM_DEAD_TUPLE_BYTES, bytes as i64),
        ]);
    }

    /// Phase II begins, for that many indexes.
    pub fn vacuums_indexes(&self, count: usize) {
        self.begins_indexes(pg_sys::PROGRESS_VACUUM_PHASE_VACUUM_INDEX, count);
    }

    /// The cleanup of that many indexes begins.
    pub fn cleans_up_indexes(&self, count: usize) {
        self.begins_indexes(pg_sys::PROGRESS_VACUUM_PHASE_INDEX_CLEANUP, count);
    }

    fn begins_indexes(&self, phase: u32, count: usize) {
        self.set_all([
            (pg_sys::PROGRESS_VACUUM_PHASE, phase.into()),
            (pg_sys::PROGRESS_VACUUM_INDEXES_TOTAL, count as i64),
        ]);
    }

    /// That many indexes are done.
    pub fn processed_indexes(&self, count: usize) {
        self.set(pg_sys::PROGRESS_VACUUM_INDEXES_PROCESSED, count as i64);
    }

    /// A round over the indexes, the `scans`th, is done.
    pub fn vacuumed_indexes(&self, scans: u32) {
        self.set_all([
            (pg_sys::PROGRESS_VACUUM_INDEXES_TOTAL, 0),
            (pg_sys::PROGRESS_VACUUM_INDEXES_PROCESSED, 0),
            (pg_sys::PROGRESS_VACUUM_NUM_INDEX_VACUUMS, scans.into()),
        ]);
    }

    /// No index is being worked on.
    pub fn leaves_indexes(&self) {
        self.set_all([
            (pg_sys::PROGRESS_VACUUM_INDEXES_TOTAL, 0),
            (pg_sys::PROGRESS_VACUUM_INDEXES_PROCESSED, 0),
        ]);
    }

    /// Phase III begins.
    pub fn vacuums_heap(&self) {
        self.enter(pg_sys::PROGRESS_VACUUM_PHASE_VACUUM_HEAP);
    }

    /// Phase III reached `block`.
    pub fn vacuumed(&self, block: u32) {
        self.set(pg_sys::PROGRESS_VACUUM_HEAP_BLKS_VACUUMED, block.into());
    }

    /// Truncation begins.
    pub fn truncates(&self) {
        self.enter(pg_sys::PROGRESS_VACUUM_PHASE_TRUNCATE);
    }

    /// What is left is bookkeeping.
    pub fn finishes(&self) {
        self.enter(pg_sys::PROGRESS_VACUUM_PHASE_FINAL_CLEANUP);
    }

    fn enter(&self, phase: u32) {
        self.set(pg_sys::PROGRESS_VACUUM_PHASE, phase.into());
    }

    #[inline]
    fn set(&self, index: u32, value: i64) {
        // SAFETY: as above; the index is one of the command's. It cannot fail.
        unsafe { raw::pgstat_progress_update_param(index as i32, value) };
    }

    /// All at once, for whoever looks.
    fn set_all<const N: usize>(&self, values: [(u32, i64); N]) {
        let (indexes, values) = (values.map(|(index, _)| index as i32), values.map(|(_, value)| value));
        // SAFETY: as above.
        unsafe {
            pg_sys::pgstat_progress_update_multi_param(N as i32, indexes.as_ptr(), values.as_ptr());
        }
    }
}

//! A row in pg_stat_progress_vacuum.

use pgrx::pg_sys;

use super::let_go;

/// Reports the first phase of a vacuum, "scanning heap", until dropped.
pub struct HeapScanProgress(());

impl HeapScanProgress {
    /// Begins to report a scan of `rel_pages` blocks of `relation`.
    pub fn start(relation: pg_sys::Oid, rel_pages: u32) -> Self {
        // SAFETY: writes this session's own entry of the statistics.
        unsafe {
            pg_sys::pgstat_progress_start_command(
                pg_sys::ProgressCommandType::PROGRESS_COMMAND_VACUUM,
                relation,
            );
        }
        let progress = HeapScanProgress(());
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
        // SAFETY: as above; the index is one of the command's.
        unsafe { pg_sys::pgstat_progress_update_param(index as i32, value) };
    }
}

impl Drop for HeapScanProgress {
    fn drop(&mut self) {
        // SAFETY: as above; after an error the server ends it itself.
        let_go(|| unsafe { pg_sys::pgstat_progress_end_command() });
    }
}

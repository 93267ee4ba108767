//! A row in pg_stat_progress_vacuum.

use pgrx::pg_sys;

use super::let_go;

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

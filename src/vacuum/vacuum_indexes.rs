//! Phase II: index entries of dead items are deleted; and whether that is worth its
//! while (vacuumlazy.c, `lazy_vacuum`, `lazy_vacuum_all_indexes`).

use super::engine::Vacuum;
use crate::server::vacuum::dead_items::DeadItems;
use crate::server::vacuum::error_context::Phase;

/// Below this share of pages with dead items, phases II and III may be left out.
const BYPASS_THRESHOLD_PAGES: f64 = 0.02;

/// And only where the dead items take less than so many bytes, so that they do not pile
/// up from one vacuum to the next.
const BYPASS_MAX_BYTES: usize = 32 << 20;

impl Vacuum<'_> {
    /// Phases II and III for the dead items found up to now, which are forgotten then.
    pub(super) fn vacuum_dead_items(&mut self, dead_items: &mut DeadItems) {
        if self.steps.index_vacuuming {
            if self.can_bypass(dead_items) {
                self.steps.index_vacuuming = false;
            } else if self.vacuum_all_indexes(dead_items) {
                self.vacuum_heap(dead_items);
            }
        }
        dead_items.reset();
    }

    /// Next to no page has dead items: go on as if none had.
    fn can_bypass(&self, dead_items: &DeadItems) -> bool {
        let few_pages = (f64::from(self.rel_pages) * BYPASS_THRESHOLD_PAGES) as u32;
        self.steps.may_bypass
            && self.counts.with_dead_items < few_pages
            && dead_items.bytes() < BYPASS_MAX_BYTES
    }

    /// Phase II; false if the failsafe ended it before all indexes were done.
    fn vacuum_all_indexes(&mut self, dead_items: &DeadItems) -> bool {
        if self.check_failsafe() {
            return false;
        }
        self.progress.vacuums_indexes(self.indexes.len());
        let table_tuples = self.relation.recorded_tuples();
        let all_done = if dead_items.is_parallel() {
            dead_items.delete_from_all_indexes(table_tuples, self.counts.index_scans);
            !self.check_failsafe()
        } else {
            (0..self.indexes.len()).all(|index| {
                let name = self.indexes.name(index);
                let place = self.context.enter_index(Phase::VacuumIndex, name);
                self.indexes.delete_dead_items(index, dead_items, table_tuples, self.strategy);
                self.context.restore(place);
                self.progress.processed_indexes(index + 1);
                !self.check_failsafe()
            })
        };
        self.counts.index_scans += 1;
        self.progress.vacuumed_indexes(self.counts.index_scans);
        all_done
    }

    /// The last call to each index (`lazy_cleanup_all_indexes`).
    pub(super) fn clean_up_indexes(&mut self, dead_items: &DeadItems) {
        let table_tuples = self.counts.new_tuples;
        let estimated = self.counts.scanned < self.rel_pages;
        self.progress.cleans_up_indexes(self.indexes.len());
        if dead_items.is_parallel() {
            dead_items.clean_up_all_indexes(table_tuples, self.counts.index_scans, estimated);
        } else {
            for index in 0..self.indexes.len() {
                let name = self.indexes.name(index);
                let place = self.context.enter_index(Phase::IndexCleanup, name);
                self.indexes.clean_up(index, table_tuples, estimated, self.strategy);
                self.context.restore(place);
                self.progress.processed_indexes(index + 1);
            }
        }
        self.progress.leaves_indexes();
    }
}

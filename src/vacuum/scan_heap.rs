//! Phase I: the first pass over the heap (vacuumlazy.c, `lazy_scan_heap`).

use pgrx::PgSqlErrorCode;

use super::engine::Vacuum;
use crate::reading::reader;
use crate::server::error::{OrRaise, UserError};
use crate::server::reader::PinnedBuffer;
use crate::server::vacuum::dead_items::DeadItems;
use crate::server::vacuum::error_context::Phase;
use crate::server::vacuum::page::{
    AllVisible, Contents, LockedPage, MapBits, Pruned, Unpruned, VisibilityPin,
};
use crate::server::vacuum::request::{delay_point, failsafe_is_active};
use crate::server::vacuum::statistics::{estimate_tuples, vacuum_free_space_map};
use crate::server::visibility_map::PinnedMap;
use crate::skipping::{Threshold, VacuumBlock, VacuumBlocks};

/// The failsafe is checked each time so many pages were scanned.
const FAILSAFE_EVERY_PAGES: u32 = pages_of_gigabytes(4);

/// Without indexes, the free space map's upper levels are brought up to date each time
/// so many blocks were passed.
const VACUUM_FSM_EVERY_PAGES: u32 = pages_of_gigabytes(8);

const fn pages_of_gigabytes(gigabytes: u64) -> u32 {
    // As bytes they do not fit 32 bits.
    ((gigabytes << 30) / pgrx::pg_sys::BLCKSZ as u64) as u32
}

/// What became of a page.
struct Processed {
    removed_tuples: u32,
    has_dead_items: bool,
    newly_frozen: bool,
}

impl Vacuum<'_> {
    /// All three phases, as often as needed, and the cleanup of indexes.
    pub(super) fn scan_heap(&mut self, dead_items: &mut DeadItems) {
        let rel_pages = self.rel_pages;
        self.progress.scans_heap(rel_pages, dead_items.max_bytes());
        let first_stale_block = self.first_pass(dead_items);
        self.estimate_tuples();
        if dead_items.count() > 0 {
            self.vacuum_dead_items(dead_items);
        }
        if rel_pages > first_stale_block {
            vacuum_free_space_map(self.relation, first_stale_block, rel_pages);
        }
        self.progress.vacuumed(rel_pages);
        if !self.indexes.is_empty() && self.steps.index_cleanup {
            self.clean_up_indexes(dead_items);
        }
    }

    /// Phase I; from which block on the upper levels of the free space map are stale.
    fn first_pass(&mut self, dead_items: &mut DeadItems) -> u32 {
        let relation = self.relation;
        let mut map = VisibilityPin::new(relation);
        let mut reader = reader(relation, self.strategy, self.reading, self.blocks_to_scan());
        let mut ring_given_up = false;
        let mut first_stale_block = 0;
        let mut last_block = 0;
        loop {
            delay_point();
            if self.counts.scanned > 0 && self.counts.scanned.is_multiple_of(FAILSAFE_EVERY_PAGES) {
                self.check_failsafe();
            }
            if dead_items.is_full() {
                map.release();
                self.steps.may_bypass = false;
                self.vacuum_dead_items(dead_items);
                vacuum_free_space_map(relation, first_stale_block, last_block + 1);
                first_stale_block = last_block;
                self.progress.scans_heap_again();
            }
            if failsafe_is_active() && !ring_given_up {
                reader.give_up_strategy();
                ring_given_up = true;
            }
            let Some((buffer, block)) = reader.next_buffer() else { break };
            last_block = block.number;
            let removed_tuples = self.scan_block(buffer, block, &mut map, dead_items);
            let since_last = last_block - first_stale_block;
            if self.indexes.is_empty() && removed_tuples > 0 && since_last >= VACUUM_FSM_EVERY_PAGES {
                vacuum_free_space_map(relation, first_stale_block, last_block);
                first_stale_block = last_block;
            }
        }
        self.context.at_block(None);
        map.release();
        let blocks = reader.finish().into_blocks();
        self.counts.below_threshold = blocks.below_threshold();
        self.counts.skipped_all_visible = blocks.skipped_all_visible();
        self.progress.scanned(self.rel_pages);
        first_stale_block
    }

    fn blocks_to_scan<'rel>(&self) -> VacuumBlocks<PinnedMap<'rel>>
    where
        Self: 'rel,
    {
        let threshold = Threshold::new(self.threshold.threshold.unsigned_abs());
        let map = PinnedMap::new(self.relation);
        VacuumBlocks::new(map, self.rel_pages, self.skipping, threshold, self.eager.clone())
    }

    /// Does with a block what phase I does; how many tuples were removed from it.
    fn scan_block(
        &mut self,
        buffer: PinnedBuffer,
        block: VacuumBlock,
        map: &mut VisibilityPin,
        dead_items: &mut DeadItems,
    ) -> u32 {
        self.counts.scanned += 1;
        self.counts.eagerly_scanned += u32::from(block.eager);
        self.progress.scanned(block.number);
        self.context.enter(Phase::ScanHeap, Some(block.number));

        let mut page = LockedPage::lock_for_pruning(buffer, block.number, map);
        let contents = match page.contents() {
            Contents::Empty if !page.has_cleanup_lock() => {
                page.lock_exclusively();
                page.contents()
            }
            contents => contents,
        };
        let processed = match contents {
            // Not entered into the map, so that later vacuums find it and a standby
            // that is promoted learns of its space.
            Contents::New => {
                page.release_new();
                self.judge_eager_scan(block, None);
                return 0;
            }
            Contents::Empty => {
                self.scan_empty(&mut page, map);
                page.release_and_record_space();
                self.judge_eager_scan(block, None);
                return 0;
            }
            Contents::Items => self.scan_items(&mut page, block, map, dead_items),
        };
        let pruned = page.has_cleanup_lock();
        self.judge_eager_scan(block, pruned.then_some(processed.newly_frozen));

        // Where phase III will come by again, it records the space.
        if self.indexes.is_empty() || !self.steps.index_vacuuming || !processed.has_dead_items {
            page.release_and_record_space();
        }
        processed.removed_tuples
    }

    fn scan_empty(&mut self, page: &mut LockedPage, map: &VisibilityPin) {
        if !page.is_marked_all_visible() {
            page.mark_empty_frozen(map);
            self.counts.newly_visible += 1;
            self.counts.newly_visible_frozen += 1;
        }
    }

    fn scan_items(
        &mut self,
        page: &mut LockedPage,
        block: VacuumBlock,
        map: &mut VisibilityPin,
        dead_items: &mut DeadItems,
    ) -> Processed {
        if !page.has_cleanup_lock() {
            let aggressive = self.aggressive();
            if let Some(found) = page.examine(&mut self.freezing, aggressive, self.context).or_raise() {
                return self.take_note(found, block.number, dead_items);
            }
            page.wait_for_cleanup_lock();
        }
        self.prune(page, block, map, dead_items)
    }

    /// What could not be pruned (`lazy_scan_noprune`).
    fn take_note(&mut self, found: Unpruned, block: u32, dead_items: &mut DeadItems) -> Processed {
        let items = found.dead_items.as_slice();
        let counts = &mut self.counts;
        let (mut missed, mut has_tuples) = (found.missed_dead, found.has_tuples);
        if self.indexes.is_empty() {
            // There is no phase III to free them.
            missed += items.len() as u32;
            has_tuples |= !items.is_empty();
        } else if !items.is_empty() {
            counts.with_dead_items += 1;
            counts.dead_items += items.len() as u64;
            dead_items.add(block, items);
            self.progress.has_dead_items(dead_items.count(), dead_items.bytes());
        }
        counts.live_tuples += u64::from(found.live);
        counts.recently_dead_tuples += u64::from(found.recently_dead);
        counts.missed_dead_tuples += u64::from(missed);
        counts.missed += u32::from(missed > 0);
        if has_tuples {
            counts.nonempty = block + 1;
        }
        Processed { removed_tuples: 0, has_dead_items: !items.is_empty(), newly_frozen: false }
    }

    /// Prunes and freezes, and keeps the map in step (`lazy_scan_prune`).
    fn prune(
        &mut self,
        page: &mut LockedPage,
        block: VacuumBlock,
        map: &mut VisibilityPin,
        dead_items: &mut DeadItems,
    ) -> Processed {
        let pruned = page.prune_and_freeze(&mut self.freezing, self.indexes.is_empty(), self.context);
        let counts = &mut self.counts;
        counts.frozen += u32::from(pruned.frozen > 0);
        counts.removed_tuples += u64::from(pruned.removed);
        counts.frozen_tuples += u64::from(pruned.frozen);
        counts.dead_items += pruned.dead_items as u64;
        counts.live_tuples += u64::from(pruned.live);
        counts.recently_dead_tuples += u64::from(pruned.recently_dead);
        if pruned.has_tuples {
            counts.nonempty = block.number + 1;
        }
        if pruned.dead_items > 0 {
            counts.with_dead_items += 1;
            dead_items.add_pruned(block.number, &mut self.freezing);
            self.progress.has_dead_items(dead_items.count(), dead_items.bytes());
        }
        Processed {
            removed_tuples: pruned.removed,
            has_dead_items: pruned.dead_items > 0,
            newly_frozen: self.update_map(page, block, map, &pruned),
        }
    }

    /// Sets the bits that pruning found to be due, and takes back those that are wrong.
    /// Whether the block became all-frozen.
    fn update_map(
        &mut self,
        page: &mut LockedPage,
        block: VacuumBlock,
        map: &mut VisibilityPin,
        pruned: &Pruned,
    ) -> bool {
        let marked = page.is_marked_all_visible();
        if !block.all_visible && pruned.all_visible {
            let before = page.set_all_visible(map, pruned.visibility(), true);
            return self.count_set(before, pruned.all_frozen);
        }
        // The bit may have been cleared since the block was chosen; only now that the
        // page is locked does a difference tell of damage.
        if block.all_visible && !marked && map.status(block.number).any() {
            self.names
                .warn_of_page(block.number, "page is not marked all-visible but visibility map bit is set");
            page.clear_all_visible(map, false);
            return false;
        }
        if pruned.dead_items > 0 && marked {
            self.names.warn_of_page(block.number, "page containing LP_DEAD items is marked as all-visible");
            page.clear_all_visible(map, true);
            return false;
        }
        let freezable = block.all_visible && pruned.all_visible && pruned.all_frozen;
        if freezable && !map.status(block.number).all_frozen() {
            // What a standby has to know was written when the tuples were frozen.
            let before = page.set_all_visible(map, AllVisible::FROZEN, !marked);
            return self.count_set(before, true);
        }
        false
    }

    /// Counts a block that was set all-visible; whether it became all-frozen.
    fn count_set(&mut self, before: MapBits, all_frozen: bool) -> bool {
        let counts = &mut self.counts;
        if !before.all_visible() {
            counts.newly_visible += 1;
            counts.newly_visible_frozen += u32::from(all_frozen);
            all_frozen
        } else {
            let newly_frozen = all_frozen && !before.all_frozen();
            counts.newly_frozen += u32::from(newly_frozen);
            newly_frozen
        }
    }

    /// Tells eager scanning what became of a block: frozen, or too young, or in use by
    /// others.
    fn judge_eager_scan(&self, block: VacuumBlock, frozen: Option<bool>) {
        if block.eager {
            match frozen {
                Some(true) if self.eager.succeeded() => self.tell(format!(
                    "disabling eager scanning after freezing {} eagerly scanned blocks of relation \"{}\"",
                    self.eager.success_limit(),
                    self.names.full()
                )),
                Some(true) => (),
                Some(false) => self.eager.failed(),
                None => self.eager.passed_over(),
            }
        }
    }

    fn estimate_tuples(&mut self) {
        let counts = &mut self.counts;
        counts.new_live_tuples =
            estimate_tuples(self.relation, self.rel_pages, counts.scanned, counts.live_tuples);
        counts.new_tuples = counts.new_live_tuples.max(0.0)
            + (counts.recently_dead_tuples + counts.missed_dead_tuples) as f64;
    }
}

impl super::report::Names {
    fn warn_of_page(&self, block: u32, what: &str) {
        let message = format!("{what} in relation \"{}\" page {block}", self.table);
        UserError::new(PgSqlErrorCode::ERRCODE_WARNING, message).warn();
    }
}

//! Phase III: the second pass over the heap, in which dead items become free
//! (vacuumlazy.c, `lazy_vacuum_heap_rel`).

use pgrx::PgLogLevel;

use super::engine::Vacuum;
use crate::reading::{Upcoming, reader};
use crate::server::error::{OrRaise, report};
use crate::server::reader::{Block, PinnedBuffer};
use crate::server::vacuum::dead_items::{DeadBlocks, DeadItems};
use crate::server::vacuum::error_context::Phase;
use crate::server::vacuum::page::{LockedPage, VisibilityPin};
use crate::server::vacuum::request::delay_point;

impl Upcoming for DeadBlocks<'_> {}

impl Vacuum<'_> {
    /// Frees all `dead_items`, which no index points to any more.
    pub(super) fn vacuum_heap(&mut self, dead_items: &DeadItems) {
        self.progress.vacuums_heap();
        let place = self.context.enter(Phase::VacuumHeap, None);
        let mut map = VisibilityPin::new(self.relation);
        let mut reader = reader(self.relation, self.strategy, self.reading, dead_items.blocks());
        let mut offsets = Vec::new();
        let mut pages = 0;
        loop {
            delay_point();
            let Some((buffer, block)) = reader.next_buffer() else { break };
            block.read_offsets(&mut offsets);
            self.vacuum_page(buffer, block.number(), &mut offsets, &mut map);
            pages += 1;
        }
        drop(reader);
        self.context.at_block(None);
        map.release();
        report(
            PgLogLevel::DEBUG2,
            format!(
                "table \"{}\": removed {} dead item identifiers in {pages} pages",
                self.names.table,
                dead_items.count()
            ),
        );
        self.context.restore(place);
    }

    /// Frees the dead items of a page, and sets its bits in the map if it is
    /// all-visible now (`lazy_vacuum_heap_page`).
    fn vacuum_page(
        &mut self,
        buffer: PinnedBuffer,
        block: u32,
        offsets: &mut [u16],
        map: &mut VisibilityPin,
    ) {
        self.context.at_block(Some(block));
        let mut page = LockedPage::lock_for_reaping(buffer, block, map);
        self.progress.vacuumed(block);
        page.reap(offsets).or_raise();
        if let Some(found) = page.all_visible(&self.freezing, self.context).or_raise() {
            page.set_all_visible(map, found, true);
            self.counts.newly_visible += 1;
            self.counts.newly_visible_frozen += u32::from(found.all_frozen);
        }
        page.release_and_record_space();
    }
}

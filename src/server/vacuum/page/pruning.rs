//! What a vacuum does to a page that it has for itself (vacuumlazy.c,
//! `lazy_scan_prune`).

use pgrx::pg_sys;

use super::{AllVisible, LockedPage};
use crate::server::boundary::guarded;
use crate::server::raw;
use crate::server::vacuum::error_context::ErrorContext;
use crate::server::vacuum::freezing::Freezing;

/// What pruning and freezing did to a page.
#[derive(Clone, Copy, Debug)]
pub struct Pruned {
    /// Tuples removed.
    pub removed: u32,
    /// Tuples newly frozen.
    pub frozen: u32,
    /// Tuples live to someone.
    pub live: u32,
    /// Tuples deleted, but not yet for everyone.
    pub recently_dead: u32,
    /// Line pointers left that are LP_DEAD.
    pub dead_items: usize,
    /// The page must not be truncated away.
    pub has_tuples: bool,
    /// Visible to everyone.
    pub all_visible: bool,
    /// And frozen; means something only where all-visible.
    pub all_frozen: bool,
    conflict_horizon: pg_sys::TransactionId,
}

impl Pruned {
    /// What the map is to say of a page that is all-visible.
    pub fn visibility(&self) -> AllVisible {
        AllVisible { all_frozen: self.all_frozen, newest_xmin: self.conflict_horizon }
    }
}

impl LockedPage<'_> {
    /// Prunes HOT chains, removes dead tuples and freezes where that is due. With
    /// `unused_at_once`, line pointers of dead tuples become free, which must not be
    /// where indexes may point to them. Must be locked for cleanup.
    pub fn prune_and_freeze(
        &mut self,
        freezing: &mut Freezing,
        unused_at_once: bool,
        context: &ErrorContext,
    ) -> Pruned {
        let mut options = pg_sys::HEAP_PAGE_PRUNE_FREEZE;
        if unused_at_once {
            options |= pg_sys::HEAP_PAGE_PRUNE_MARK_UNUSED_NOW;
        }
        let result = &raw mut freezing.result;
        // SAFETY: pinned and locked for cleanup; all that is pointed to outlives
        // the call.
        unsafe {
            guarded(|| {
                raw::heap_page_prune_and_freeze(
                    self.relation.as_ptr(),
                    self.buffer,
                    freezing.vistest,
                    options as i32,
                    &mut freezing.cutoffs,
                    result,
                    pg_sys::PruneReason::PRUNE_VACUUM_SCAN,
                    context.offset().as_ptr(),
                    &mut freezing.oldest_xid,
                    &mut freezing.oldest_mxid,
                );
            });
        }
        let result = &freezing.result;
        Pruned {
            removed: result.ndeleted as u32,
            frozen: result.nfrozen as u32,
            live: result.live_tuples as u32,
            recently_dead: result.recently_dead_tuples as u32,
            dead_items: result.lpdead_items as usize,
            has_tuples: result.hastup,
            all_visible: result.all_visible,
            all_frozen: result.all_frozen,
            conflict_horizon: result.vm_conflict_horizon,
        }
    }
}

//! Whether a page is visible to everyone, and the visibility map's bits of it.

use pgrx::pg_sys::{self, HTSV_Result};

use super::{Item, LockedPage};
use crate::server::boundary::guarded;
use crate::server::error::UserError;
use crate::server::reader::INVALID_BUFFER;
use crate::server::relation::HeapRelation;
use crate::server::vacuum::error_context::ErrorContext;
use crate::server::vacuum::freezing::Freezing;
use crate::server::{let_go, raw};

/// A pin on the page of the visibility map that was needed last.
pub struct VisibilityPin<'rel> {
    pub(super) relation: &'rel HeapRelation,
    pub(super) buffer: pg_sys::Buffer,
}

impl<'rel> VisibilityPin<'rel> {
    /// No page pinned yet.
    pub fn new(relation: &'rel HeapRelation) -> Self {
        VisibilityPin { relation, buffer: INVALID_BUFFER }
    }

    /// Lets it go until it is needed again.
    pub fn release(&mut self) {
        if self.buffer != INVALID_BUFFER {
            // SAFETY: the pin is ours.
            unsafe { guarded(|| raw::ReleaseBuffer(self.buffer)) };
            self.buffer = INVALID_BUFFER;
        }
    }

    /// What the map says of `block` now.
    pub fn status(&mut self, block: u32) -> MapBits {
        // SAFETY: the relation is open, the buffer none or a pin of ours.
        MapBits(unsafe {
            guarded(|| raw::visibilitymap_get_status(self.relation.as_ptr(), block, &mut self.buffer))
        })
    }
}

impl Drop for VisibilityPin<'_> {
    fn drop(&mut self) {
        let_go(|| self.release());
    }
}

/// The bits of a block in the visibility map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapBits(u8);

impl MapBits {
    /// Any of them is set.
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// Visible to everyone.
    pub fn all_visible(self) -> bool {
        self.0 & pg_sys::VISIBILITYMAP_ALL_VISIBLE as u8 != 0
    }

    /// And frozen.
    pub fn all_frozen(self) -> bool {
        self.0 & pg_sys::VISIBILITYMAP_ALL_FROZEN as u8 != 0
    }
}

/// Everything on a page is visible to everyone.
#[derive(Clone, Copy, Debug)]
pub struct AllVisible {
    /// And frozen.
    pub all_frozen: bool,
    /// The newest that inserted one of its rows: standbys must have no snapshot that does
    /// not see them. Invalid where there is none to wait for.
    pub(super) newest_xmin: pg_sys::TransactionId,
}

impl AllVisible {
    /// Everything frozen, with nothing that a standby's query could miss.
    pub const FROZEN: AllVisible = AllVisible { all_frozen: true, newest_xmin: pg_sys::InvalidTransactionId };

    /// Takes a live tuple in; false where not everyone sees it.
    ///
    /// # Safety
    ///
    /// Only within [`guarded`], for a tuple of a page that is locked.
    unsafe fn include(&mut self, tuple: pg_sys::HeapTupleHeader, oldest_xmin: pg_sys::TransactionId) -> bool {
        // SAFETY: as the caller promises. The other functions compare numbers.
        unsafe {
            let infomask = u32::from((*tuple).t_infomask);
            if infomask & pg_sys::HEAP_XMIN_COMMITTED == 0 {
                return false;
            }
            let frozen = infomask & pg_sys::HEAP_XMIN_FROZEN == pg_sys::HEAP_XMIN_FROZEN;
            let xmin = (*tuple).t_choice.t_heap.t_xmin;
            if !frozen {
                if !raw::TransactionIdPrecedes(xmin, oldest_xmin) {
                    return false;
                }
                let is_normal = xmin.into_inner() >= pg_sys::FirstNormalTransactionId.into_inner();
                if is_normal && raw::TransactionIdPrecedes(self.newest_xmin, xmin) {
                    self.newest_xmin = xmin;
                }
            }
            self.all_frozen = self.all_frozen && !raw::heap_tuple_needs_eventual_freeze(tuple);
            true
        }
    }
}

impl LockedPage<'_> {
    /// Marks an empty page as all-visible and all-frozen, on itself and in the map.
    /// Must be locked for changes.
    pub fn mark_empty_frozen(&mut self, map: &VisibilityPin) {
        const FLAGS: u8 = (pg_sys::VISIBILITYMAP_ALL_VISIBLE | pg_sys::VISIBILITYMAP_ALL_FROZEN) as u8;
        let needs_wal = self.relation.needs_wal();
        // SAFETY: pinned and locked; the map's page is pinned. Errors within the
        // critical section become a PANIC of the server, as they must.
        unsafe {
            guarded(|| {
                let header = self.header();
                pg_sys::CritSectionCount += 1;
                raw::MarkBufferDirty(self.buffer);
                // A page whose initialization never got into WAL would be missing
                // when the map's record is replayed.
                if needs_wal && (*header).pd_lsn.xlogid == 0 && (*header).pd_lsn.xrecoff == 0 {
                    raw::log_newpage_buffer(self.buffer, true);
                }
                (*header).pd_flags |= pg_sys::PD_ALL_VISIBLE as u16;
                raw::visibilitymap_set(
                    self.relation.as_ptr(),
                    self.block,
                    self.buffer,
                    pg_sys::InvalidXLogRecPtr.into(),
                    map.buffer,
                    pg_sys::InvalidTransactionId,
                    FLAGS,
                );
                pg_sys::CritSectionCount -= 1;
            });
        }
    }

    /// Marks it as all-visible in the map, as pruning found it to be; with
    /// `mark_page` also on itself. What the map said before. Must be locked for
    /// changes.
    pub fn set_all_visible(&mut self, map: &VisibilityPin, found: AllVisible, mark_page: bool) -> MapBits {
        let mut flags = pg_sys::VISIBILITYMAP_ALL_VISIBLE as u8;
        if found.all_frozen {
            flags |= pg_sys::VISIBILITYMAP_ALL_FROZEN as u8;
        }
        // SAFETY: pinned and locked; the map's page is pinned.
        MapBits(unsafe {
            guarded(|| {
                if mark_page {
                    (*self.header()).pd_flags |= pg_sys::PD_ALL_VISIBLE as u16;
                    raw::MarkBufferDirty(self.buffer);
                }
                raw::visibilitymap_set(
                    self.relation.as_ptr(),
                    self.block,
                    self.buffer,
                    pg_sys::InvalidXLogRecPtr.into(),
                    map.buffer,
                    found.newest_xmin,
                    flags,
                )
            })
        })
    }

    /// Takes the marks back in the map; with `unmark_page` also on itself. Must be
    /// locked for changes.
    pub fn clear_all_visible(&mut self, map: &VisibilityPin, unmark_page: bool) {
        // SAFETY: pinned and locked; the map's page is pinned.
        unsafe {
            guarded(|| {
                if unmark_page {
                    (*self.header()).pd_flags &= !(pg_sys::PD_ALL_VISIBLE as u16);
                    raw::MarkBufferDirty(self.buffer);
                }
                raw::visibilitymap_clear(
                    self.relation.as_ptr(),
                    self.block,
                    map.buffer,
                    pg_sys::VISIBILITYMAP_VALID_BITS as u8,
                );
            });
        }
    }

    /// Whether everything on the page is visible to everyone, the line pointers
    /// LP_DEAD not being so.
    ///
    /// # Errors
    ///
    /// XX001 for a line pointer that leads out of the page.
    pub fn all_visible(
        &self,
        freezing: &Freezing,
        context: &ErrorContext,
    ) -> Result<Option<AllVisible>, UserError> {
        let mut found = AllVisible { all_frozen: true, newest_xmin: pg_sys::InvalidTransactionId };
        // SAFETY: as in `examine`.
        let all_visible = unsafe {
            self.look_at_items(context, |_, item| match item {
                Item::Tuple(mut tuple) => {
                    let live = self.state_of(&mut tuple, freezing) == HTSV_Result::HEAPTUPLE_LIVE;
                    live && found.include(tuple.t_data, freezing.cutoffs.OldestXmin)
                }
                Item::Redirect => true,
                Item::Dead => false,
            })?
        };
        Ok(all_visible.then_some(found))
    }
}

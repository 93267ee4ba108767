//! A heap page under a lock, and what a vacuum does to it.
//!
//! Each step is one call into the server, however many functions of the server
//! it takes. What happens within a critical section happens in one function,
//! which neither allocates nor can panic.
//!
//! Between the steps the page stays locked while Rust code runs. A panic there
//! leaves the lock to the transaction's abort (see [`crate::server`]).
//!
//! Here a page is locked, looked at, and let go. What is done to it has files of its own,
//! by the functions of vacuumlazy.c: [`pruning`] (`lazy_scan_prune`), [`noprune`]
//! (`lazy_scan_noprune`), [`reaping`] (`lazy_vacuum_heap_page`), and [`visibility`] for
//! what they all do to the visibility map.

mod noprune;
mod pruning;
mod reaping;
mod visibility;

use std::mem::offset_of;

pub use noprune::Unpruned;
use pgrx::{PgSqlErrorCode, pg_sys};
pub use pruning::Pruned;
pub use visibility::{AllVisible, MapBits, VisibilityPin};

use super::error_context::ErrorContext;
use super::freezing::Freezing;
use crate::server::boundary::guarded;
use crate::server::error::UserError;
use crate::server::page::{HEADER, may_hold_tuple, tuple_of};
use crate::server::reader::{PinnedBuffer, page_of};
use crate::server::relation::HeapRelation;
use crate::server::{let_go, raw};

const SHARE: i32 = pg_sys::BUFFER_LOCK_SHARE as i32;
const EXCLUSIVE: i32 = pg_sys::BUFFER_LOCK_EXCLUSIVE as i32;
const UNLOCK: i32 = pg_sys::BUFFER_LOCK_UNLOCK as i32;

/// What is on a page, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Never initialized: all zeros.
    New,
    /// No line pointers.
    Empty,
    /// Line pointers.
    Items,
}

/// What is at a line pointer.
enum Item {
    Tuple(pg_sys::HeapTupleData),
    Redirect,
    Dead,
}

/// A page that is pinned and locked; unlocked and released when dropped.
pub struct LockedPage<'rel> {
    relation: &'rel HeapRelation,
    block: u32,
    buffer: pg_sys::Buffer,
    cleanup: bool,
}

impl<'rel> LockedPage<'rel> {
    /// Locks the page for cleanup if nobody else has it pinned, else for reading; and
    /// pins the map's page for it.
    pub fn lock_for_pruning(
        buffer: PinnedBuffer,
        block: u32,
        map: &mut VisibilityPin<'rel>,
    ) -> LockedPage<'rel> {
        let relation = map.relation;
        let buffer = buffer.into_raw();
        // SAFETY: the buffer is pinned, the relation open. The map is pinned before
        // the page is locked, since that may read from disk.
        let cleanup = unsafe {
            guarded(|| {
                raw::CheckBufferIsPinnedOnce(buffer);
                raw::visibilitymap_pin(relation.as_ptr(), block, &mut map.buffer);
                let cleanup = raw::ConditionalLockBufferForCleanup(buffer);
                if !cleanup {
                    raw::LockBuffer(buffer, SHARE);
                }
                cleanup
            })
        };
        LockedPage { relation, block, buffer, cleanup }
    }

    /// Locks the page for changing its line pointers; and pins the map's page for it.
    pub fn lock_for_reaping(
        buffer: PinnedBuffer,
        block: u32,
        map: &mut VisibilityPin<'rel>,
    ) -> LockedPage<'rel> {
        let relation = map.relation;
        let buffer = buffer.into_raw();
        // SAFETY: as above.
        unsafe {
            guarded(|| {
                raw::visibilitymap_pin(relation.as_ptr(), block, &mut map.buffer);
                raw::LockBuffer(buffer, EXCLUSIVE);
            });
        }
        LockedPage { relation, block, buffer, cleanup: false }
    }

    /// Whether nobody else has it pinned.
    pub fn has_cleanup_lock(&self) -> bool {
        self.cleanup
    }

    /// Waits until nobody else has it pinned, unlocked meanwhile.
    pub fn wait_for_cleanup_lock(&mut self) {
        // SAFETY: pinned once, and locked, by us.
        unsafe {
            guarded(|| {
                raw::LockBuffer(self.buffer, UNLOCK);
                raw::LockBufferForCleanup(self.buffer);
            });
        }
        self.cleanup = true;
    }

    /// Locks it for changes, unlocked meanwhile.
    pub fn lock_exclusively(&mut self) {
        // SAFETY: as above.
        unsafe {
            guarded(|| {
                raw::LockBuffer(self.buffer, UNLOCK);
                raw::LockBuffer(self.buffer, EXCLUSIVE);
            });
        }
    }

    /// What is on it.
    pub fn contents(&self) -> Contents {
        // SAFETY: pinned and locked.
        let (lower, upper) = unsafe { ((*self.header()).pd_lower, (*self.header()).pd_upper) };
        match (upper, usize::from(lower)) {
            (0, _) => Contents::New,
            (_, lower) if lower <= HEADER => Contents::Empty,
            _ => Contents::Items,
        }
    }

    /// Whether its own header says that it is all-visible.
    pub fn is_marked_all_visible(&self) -> bool {
        // SAFETY: pinned and locked.
        unsafe { (*self.header()).pd_flags & pg_sys::PD_ALL_VISIBLE as u16 != 0 }
    }

    fn page(&self) -> *mut u8 {
        // SAFETY: pinned as long as self.
        unsafe { page_of(self.buffer).cast_mut() }
    }

    fn header(&self) -> *mut pg_sys::PageHeaderData {
        self.page().cast()
    }

    /// Unlocks and releases it, then enters its free space into the free space map.
    pub fn release_and_record_space(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: pinned and locked; the space is measured before that ends.
        unsafe {
            guarded(|| {
                let space = raw::PageGetHeapFreeSpace(this.page());
                raw::UnlockReleaseBuffer(this.buffer);
                raw::RecordPageWithFreeSpace(this.relation.as_ptr(), this.block, space);
            });
        }
    }

    /// Unlocks and releases a new page, then enters it into the free space map if it
    /// is not there yet.
    pub fn release_new(self) {
        const SPACE: usize = pg_sys::BLCKSZ as usize - HEADER;
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: pinned and locked.
        unsafe {
            guarded(|| {
                raw::UnlockReleaseBuffer(this.buffer);
                let relation = this.relation.as_ptr();
                if raw::GetRecordedFreeSpace(relation, this.block) == 0 {
                    raw::RecordPageWithFreeSpace(relation, this.block, SPACE);
                }
            });
        }
    }

    fn item_count(&self) -> usize {
        // SAFETY: pinned and locked. The header was checked when the page was read,
        // so that all these are on the page.
        let lower = usize::from(unsafe { (*self.header()).pd_lower });
        lower.saturating_sub(HEADER) / size_of::<pg_sys::ItemIdData>()
    }

    fn item(&self, number: u16) -> *mut pg_sys::ItemIdData {
        let first = self.page().wrapping_add(offset_of!(pg_sys::PageHeaderData, pd_linp));
        first.cast::<pg_sys::ItemIdData>().wrapping_add(usize::from(number) - 1)
    }

    /// Shows the line pointers that are in use to `look`, in rising order, until it says
    /// false; whether it saw them all.
    ///
    /// # Errors
    ///
    /// XX001 for a line pointer that leads out of the page.
    ///
    /// # Safety
    ///
    /// `look` is called within [`guarded`]: it must not panic, nor own or call anything
    /// that needs dropping.
    unsafe fn look_at_items(
        &self,
        context: &ErrorContext,
        mut look: impl FnMut(u16, Item) -> bool,
    ) -> Result<bool, UserError> {
        let mut broken = None;
        // SAFETY: pinned and locked; the line pointers are on the page.
        let saw_all = unsafe {
            guarded(|| {
                (1..=self.item_count() as u16).all(|number| {
                    context.offset().set(number);
                    let item = *self.item(number);
                    match item.lp_flags() {
                        pg_sys::LP_NORMAL if may_hold_tuple(item) => {
                            look(number, Item::Tuple(self.tuple(number, item)))
                        }
                        pg_sys::LP_NORMAL => {
                            broken = Some(number);
                            false
                        }
                        pg_sys::LP_REDIRECT => look(number, Item::Redirect),
                        pg_sys::LP_DEAD => look(number, Item::Dead),
                        _ => true,
                    }
                })
            })
        };
        context.offset().set(pg_sys::InvalidOffsetNumber);
        broken.map_or(Ok(saw_all), |number| Err(self.broken(number)))
    }

    fn tuple(&self, number: u16, item: pg_sys::ItemIdData) -> pg_sys::HeapTupleData {
        let mut tuple = tuple_of(self.relation.oid(), self.block);
        tuple.t_len = item.lp_len();
        tuple.t_self.ip_posid = number;
        tuple.t_data = self.page().wrapping_add(item.lp_off() as usize).cast();
        tuple
    }

    /// What vacuums think of a tuple.
    ///
    /// # Safety
    ///
    /// Only within [`guarded`], for a tuple of this page.
    unsafe fn state_of(
        &self,
        tuple: &mut pg_sys::HeapTupleData,
        freezing: &Freezing,
    ) -> pg_sys::HTSV_Result::Type {
        // SAFETY: as the caller promises; the buffer is pinned and locked.
        unsafe { raw::HeapTupleSatisfiesVacuum(tuple, freezing.cutoffs.OldestXmin, self.buffer) }
    }

    fn broken(&self, number: u16) -> UserError {
        UserError::new(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!(
                "invalid line pointer {number} in block {} of relation \"{}\"",
                self.block,
                self.relation.name()
            ),
        )
        .hint("Check the table with pg_amcheck.")
    }
}

impl Drop for LockedPage<'_> {
    fn drop(&mut self) {
        // SAFETY: pinned and locked by us.
        let_go(|| unsafe { guarded(|| raw::UnlockReleaseBuffer(self.buffer)) });
    }
}

//! A heap page under a lock, and what a vacuum does to it.
//!
//! Each step is one call into the server, however many functions of the server
//! it takes. What happens within a critical section happens in one function,
//! which neither allocates nor can panic.
//!
//! Between the steps the page stays locked while Rust code runs. A panic there
//! leaves the lock to the transaction's abort (see [`crate::server`]).

use std::mem::offset_of;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::error_context::ErrorContext;
use super::freezing::Freezing;
use crate::server::boundary::guarded;
use crate::server::error::UserError;
use crate::server::let_go;
use crate::server::page::{HEADER, may_hold_tuple, tuple_of};
use crate::server::raw;
use crate::server::reader::{INVALID_BUFFER, PinnedBuffer, page_of};
use crate::server::relation::HeapRelation;

const SHARE: i32 = pg_sys::BUFFER_LOCK_SHARE as i32;
const EXCLUSIVE: i32 = pg_sys::BUFFER_LOCK_EXCLUSIVE as i32;
const UNLOCK: i32 = pg_sys::BUFFER_LOCK_UNLOCK as i32;

/// The most line pointers that fit on a page, damaged ones included.
const MOST_ITEMS: usize = (pg_sys::BLCKSZ as usize - HEADER) / size_of::<pg_sys::ItemIdData>();

/// A pin on the page of the visibility map that was needed last.
pub struct VisibilityPin<'rel> {
    relation: &'rel HeapRelation,
    buffer: pg_sys::Buffer,
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

/// Line pointers of a page, by their numbers.
pub struct Offsets {
    count: usize,
    numbers: [u16; MOST_ITEMS],
}

impl Offsets {
    fn none() -> Self {
        Offsets { count: 0, numbers: [0; MOST_ITEMS] }
    }

    /// The numbers, in rising order.
    pub fn as_slice(&self) -> &[u16] {
        &self.numbers[..self.count]
    }
}

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

/// What is on a page that could not be pruned.
pub struct Unpruned {
    /// Tuples live to someone.
    pub live: u32,
    /// Tuples deleted, but not yet for everyone.
    pub recently_dead: u32,
    /// Tuples that pruning would have removed.
    pub missed_dead: u32,
    /// The page must not be truncated away.
    pub has_tuples: bool,
    /// Line pointers that are LP_DEAD.
    pub dead_items: Offsets,
}

/// Everything on a page is visible to everyone.
#[derive(Clone, Copy, Debug)]
pub struct AllVisible {
    /// And frozen.
    pub all_frozen: bool,
    newest_xmin: pg_sys::TransactionId,
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

    /// Looks at everything on the page without changing it. None where a tuple is so
    /// old that an `aggressive` vacuum must freeze it, which takes a cleanup lock.
    ///
    /// # Errors
    ///
    /// XX001 for a line pointer that leads out of the page.
    pub fn examine(
        &self,
        freezing: &mut Freezing,
        aggressive: bool,
        context: &ErrorContext,
    ) -> Result<Option<Unpruned>, UserError> {
        let mut found = Unpruned {
            live: 0,
            recently_dead: 0,
            missed_dead: 0,
            has_tuples: false,
            dead_items: Offsets::none(),
        };
        let (mut oldest_xid, mut oldest_mxid) = (freezing.oldest_xid, freezing.oldest_mxid);
        // SAFETY: pinned and locked. The closure owns nothing that needs dropping.
        let outcome = unsafe {
            guarded(|| {
                for (number, item) in self.items() {
                    context.offset().set(number);
                    match item.lp_flags() {
                        pg_sys::LP_NORMAL if !may_hold_tuple(item) => return Outcome::Broken(number),
                        pg_sys::LP_NORMAL => {
                            let mut tuple = self.tuple(number, item);
                            let old = raw::heap_tuple_should_freeze(
                                tuple.t_data,
                                &freezing.cutoffs,
                                &mut oldest_xid,
                                &mut oldest_mxid,
                            );
                            if old && aggressive {
                                return Outcome::RuledOut;
                            }
                            found.count(self.state_of(&mut tuple, freezing));
                        }
                        pg_sys::LP_DEAD => found.dead_items.add(number),
                        pg_sys::LP_REDIRECT => found.has_tuples = true,
                        _ => (),
                    }
                }
                Outcome::Examined
            })
        };
        context.offset().set(0);
        match outcome {
            Outcome::Broken(number) => Err(self.broken(number)),
            Outcome::RuledOut => Ok(None),
            Outcome::Examined => {
                (freezing.oldest_xid, freezing.oldest_mxid) = (oldest_xid, oldest_mxid);
                Ok(Some(found))
            }
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
        let outcome = unsafe {
            guarded(|| {
                for (number, item) in self.items() {
                    context.offset().set(number);
                    match item.lp_flags() {
                        pg_sys::LP_NORMAL if !may_hold_tuple(item) => return Outcome::Broken(number),
                        pg_sys::LP_NORMAL => {
                            let mut tuple = self.tuple(number, item);
                            let live = self.state_of(&mut tuple, freezing) == LIVE;
                            if !live || !found.include(tuple.t_data, freezing.cutoffs.OldestXmin) {
                                return Outcome::RuledOut;
                            }
                        }
                        pg_sys::LP_DEAD => return Outcome::RuledOut,
                        _ => (),
                    }
                }
                Outcome::Examined
            })
        };
        context.offset().set(0);
        match outcome {
            Outcome::Broken(number) => Err(self.broken(number)),
            Outcome::RuledOut => Ok(None),
            Outcome::Examined => Ok(Some(found)),
        }
    }

    /// Makes line pointers that are LP_DEAD free, and drops those at the end of the
    /// page that are free. Must be locked for changes.
    ///
    /// # Errors
    ///
    /// XX001 where one of them is not LP_DEAD; nothing is changed then.
    pub fn reap(&mut self, dead_items: &mut [u16]) -> Result<(), UserError> {
        if let Some(&number) = dead_items.iter().find(|&&number| !self.is_dead_item(number)) {
            return Err(self.broken(number));
        }
        let needs_wal = self.relation.needs_wal();
        // SAFETY: pinned and locked; the line pointers are on the page. Errors within
        // the critical section become a PANIC of the server, as they must.
        unsafe {
            guarded(|| {
                pg_sys::CritSectionCount += 1;
                for &number in &*dead_items {
                    // LP_UNUSED without storage.
                    self.item(number).write(pg_sys::ItemIdData::default());
                }
                raw::PageTruncateLinePointerArray(self.page());
                raw::MarkBufferDirty(self.buffer);
                if needs_wal {
                    self.log_reaped(dead_items);
                }
                pg_sys::CritSectionCount -= 1;
            });
        }
        Ok(())
    }

    /// # Safety
    ///
    /// Only within [`LockedPage::reap`]'s critical section.
    unsafe fn log_reaped(&self, dead_items: &mut [u16]) {
        use std::ptr::null_mut;
        // SAFETY: as the caller promises.
        unsafe {
            raw::log_heap_prune_and_freeze(
                self.relation.as_ptr(),
                self.buffer,
                pg_sys::InvalidTransactionId,
                false,
                pg_sys::PruneReason::PRUNE_VACUUM_CLEANUP,
                null_mut(),
                0,
                null_mut(),
                0,
                null_mut(),
                0,
                dead_items.as_mut_ptr(),
                dead_items.len() as i32,
            );
        }
    }

    fn is_dead_item(&self, number: u16) -> bool {
        if number == 0 || usize::from(number) > self.item_count() {
            return false;
        }
        // SAFETY: it is on the page, which is pinned and locked.
        let item = unsafe { *self.item(number) };
        item.lp_flags() == pg_sys::LP_DEAD && item.lp_len() == 0
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

    /// The line pointers and their numbers, in rising order.
    fn items(&self) -> impl Iterator<Item = (u16, pg_sys::ItemIdData)> {
        // SAFETY: as many as there are on the page, which is pinned and locked.
        (1..=self.item_count() as u16).map(|number| (number, unsafe { *self.item(number) }))
    }

    fn tuple(&self, number: u16, item: pg_sys::ItemIdData) -> pg_sys::HeapTupleData {
        let mut tuple = tuple_of(self.relation.oid(), self.block);
        tuple.t_len = item.lp_len();
        tuple.t_self.ip_posid = number;
        tuple.t_data = self.page().wrapping_add(item.lp_off() as usize).cast();
        tuple
    }

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

const LIVE: pg_sys::HTSV_Result::Type = pg_sys::HTSV_Result::HEAPTUPLE_LIVE;

/// Why a look at a page ended.
enum Outcome {
    Examined,
    /// Something was found that rules out what was asked.
    RuledOut,
    /// A line pointer leads out of the page.
    Broken(u16),
}

impl Offsets {
    fn add(&mut self, number: u16) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += 1;
        }
    }
}

impl Unpruned {
    fn count(&mut self, state: pg_sys::HTSV_Result::Type) {
        self.has_tuples = true;
        match state {
            LIVE | pg_sys::HTSV_Result::HEAPTUPLE_DELETE_IN_PROGRESS => self.live += 1,
            pg_sys::HTSV_Result::HEAPTUPLE_DEAD => self.missed_dead += 1,
            pg_sys::HTSV_Result::HEAPTUPLE_RECENTLY_DEAD => self.recently_dead += 1,
            // Being inserted: pruning does not count it either.
            _ => (),
        }
    }
}

impl Pruned {
    /// What the map is to say of a page that is all-visible.
    pub fn visibility(&self) -> AllVisible {
        AllVisible { all_frozen: self.all_frozen, newest_xmin: self.conflict_horizon }
    }
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
                if !precedes(xmin, oldest_xmin) {
                    return false;
                }
                if is_normal(xmin) && precedes(self.newest_xmin, xmin) {
                    self.newest_xmin = xmin;
                }
            }
            self.all_frozen = self.all_frozen && !raw::heap_tuple_needs_eventual_freeze(tuple);
            true
        }
    }
}

fn is_normal(xid: pg_sys::TransactionId) -> bool {
    xid.into_inner() >= pg_sys::FirstNormalTransactionId.into_inner()
}

/// Whether a transaction is older than another, in the circle of their numbers
/// (transam.c, `TransactionIdPrecedes`).
fn precedes(older: pg_sys::TransactionId, newer: pg_sys::TransactionId) -> bool {
    let (a, b) = (older.into_inner(), newer.into_inner());
    if is_normal(older) && is_normal(newer) { (a.wrapping_sub(b) as i32) < 0 } else { a < b }
}

//! The exclusive lock for cutting off empty blocks at the end, and the cut.

use pgrx::pg_sys;

use crate::server::boundary::guarded;
use crate::server::interrupts::check_for_interrupts;
use crate::server::let_go;
use crate::server::page::HEADER;
use crate::server::raw;
use crate::server::reader::{Strategy, page_of};
use crate::server::relation::HeapRelation;

const EXCLUSIVE: i32 = pg_sys::AccessExclusiveLock as i32;
const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// AccessExclusiveLock on a relation beside the lock that the vacuum has; given back
/// when dropped.
pub struct ExclusiveLock<'rel>(&'rel HeapRelation);

impl<'rel> ExclusiveLock<'rel> {
    /// The lock, unless others have one.
    pub fn try_take(relation: &'rel HeapRelation) -> Option<Self> {
        // SAFETY: the relation is open.
        let taken = unsafe { guarded(|| raw::ConditionalLockRelation(relation.as_ptr(), EXCLUSIVE)) };
        taken.then(|| ExclusiveLock(relation))
    }

    /// Whether anybody waits for it.
    pub fn has_waiters(&self) -> bool {
        // SAFETY: the lock is ours.
        unsafe { guarded(|| raw::LockHasWaitersRelation(self.0.as_ptr(), EXCLUSIVE)) }
    }

    /// Cuts the relation off after `pages` blocks.
    pub fn truncate(&self, pages: u32) {
        // SAFETY: nobody else can use the relation.
        unsafe { guarded(|| raw::RelationTruncate(self.0.as_ptr(), pages)) };
    }

    /// Tells the kernel that blocks `from` to `to` (included) will be read.
    pub fn prefetch(&self, from: u32, to: u32) {
        for block in from..=to {
            // SAFETY: the relation is open.
            unsafe { guarded(|| raw::PrefetchBuffer(self.0.as_ptr(), MAIN, block)) };
            check_for_interrupts();
        }
    }

    /// Whether `block` has any line pointer in use.
    pub fn has_items(&self, block: u32, strategy: &Strategy) -> bool {
        // SAFETY: the relation is open. The page is pinned and locked while it is
        // looked at; its header was checked when it was read.
        unsafe {
            guarded(|| {
                let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
                let buffer = raw::ReadBufferExtended(self.0.as_ptr(), MAIN, block, mode, strategy.as_ptr());
                raw::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
                let used = page_has_items(page_of(buffer));
                raw::UnlockReleaseBuffer(buffer);
                used
            })
        }
    }
}

impl Drop for ExclusiveLock<'_> {
    fn drop(&mut self) {
        // SAFETY: taken once, given back only here.
        let_go(|| unsafe { guarded(|| raw::UnlockRelation(self.0.as_ptr(), EXCLUSIVE)) });
    }
}

/// # Safety
///
/// `page` must be pinned and locked.
unsafe fn page_has_items(page: *const u8) -> bool {
    // SAFETY: as the caller promises; line pointers up to pd_lower are on the page. On
    // a new page there are none.
    unsafe {
        let lower = usize::from((*page.cast::<pg_sys::PageHeaderData>()).pd_lower);
        let count = lower.saturating_sub(HEADER) / size_of::<pg_sys::ItemIdData>();
        let items = page.add(HEADER).cast::<pg_sys::ItemIdData>();
        (0..count).any(|number| (*items.add(number)).lp_flags() != pg_sys::LP_UNUSED)
    }
}

/// Waits for `milliseconds`, or until this process is wanted.
pub fn wait(milliseconds: u32) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let event = pg_sys::WaitEventTimeout::WAIT_EVENT_VACUUM_TRUNCATE;
    // SAFETY: this process's own latch.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, milliseconds.into(), event);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

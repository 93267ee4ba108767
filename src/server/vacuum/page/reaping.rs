//! What a vacuum does to the dead items of a page once no index points to them
//! (vacuumlazy.c, `lazy_vacuum_heap_page`).

use std::ptr::null_mut;

use pgrx::pg_sys;

use super::LockedPage;
use crate::server::boundary::guarded;
use crate::server::error::UserError;
use crate::server::raw;

impl LockedPage<'_> {
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
}

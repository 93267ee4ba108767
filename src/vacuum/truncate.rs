//! Empty blocks at the end are cut off (vacuumlazy.c, `lazy_truncate_heap`).
//!
//! That takes an exclusive lock, for which a vacuum must not make others wait: it gives
//! up rather than queue for it, and lets it go as soon as somebody else queues.

use std::time::{Duration, Instant};

use super::engine::Vacuum;
use crate::server::interrupts::check_for_interrupts;
use crate::server::vacuum::error_context::Phase;
use crate::server::vacuum::request::failsafe_is_active;
use crate::server::vacuum::truncation::{ExclusiveLock, wait};

/// It is worth the lock from so many blocks on, or this fraction of the table.
const REL_TRUNCATE_MINIMUM: u32 = 1000;
const REL_TRUNCATE_FRACTION: u32 = 16;

/// How often it is looked whether anybody waits for the lock.
const LOCK_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How often and for how long the lock is tried for, in milliseconds.
const LOCK_WAIT_INTERVAL: u32 = 50;
const LOCK_TIMEOUT: u32 = 5000;

/// Blocks that are announced to the kernel at once, since they are read backwards. A
/// power of two.
const PREFETCH_SIZE: u32 = 32;

/// How the look at the blocks at the end came out.
struct Checked {
    /// How many blocks must stay.
    pages: u32,
    /// The look ended since somebody waits for the lock.
    lock_wanted: bool,
}

impl Vacuum<'_> {
    /// Whether enough blocks at the end seem to be empty.
    pub(super) fn should_truncate(&self) -> bool {
        if !self.steps.truncation || failsafe_is_active() {
            return false;
        }
        let freeable = self.rel_pages - self.counts.nonempty;
        freeable > 0
            && (freeable >= REL_TRUNCATE_MINIMUM || freeable >= self.rel_pages / REL_TRUNCATE_FRACTION)
    }

    /// Cuts off as many empty blocks at the end as others allow.
    pub(super) fn truncate(&mut self) {
        self.progress.truncates();
        self.context.enter(Phase::Truncate, Some(self.counts.nonempty));
        loop {
            let Some(lock) = self.lock_exclusively() else {
                self.tell(format!(
                    "\"{}\": stopping truncate due to conflicting lock request",
                    self.names.table
                ));
                return;
            };
            // Blocks added meanwhile surely have tuples.
            if self.relation.pages() != self.rel_pages {
                return;
            }
            let Checked { pages, lock_wanted } = self.check_end(&lock);
            self.context.at_block(Some(pages));
            if pages >= self.rel_pages {
                return;
            }
            lock.truncate(pages);
            drop(lock);
            self.tell(format!(
                "table \"{}\": truncated {} to {pages} pages",
                self.names.table, self.rel_pages
            ));
            self.counts.removed += self.rel_pages - pages;
            self.rel_pages = pages;
            if pages <= self.counts.nonempty || !lock_wanted {
                return;
            }
        }
    }

    fn lock_exclusively(&self) -> Option<ExclusiveLock<'_>> {
        for _ in 0..LOCK_TIMEOUT / LOCK_WAIT_INTERVAL {
            if let Some(lock) = self.try_lock() {
                return Some(lock);
            }
            wait(LOCK_WAIT_INTERVAL);
        }
        self.try_lock()
    }

    fn try_lock(&self) -> Option<ExclusiveLock<'_>> {
        let lock = ExclusiveLock::try_take(self.relation);
        if lock.is_none() {
            check_for_interrupts();
        }
        lock
    }

    /// Looks from the end backwards for the last block that must stay: others may have
    /// used some since phase I (`count_nondeletable_pages`).
    fn check_end(&self, lock: &ExclusiveLock) -> Checked {
        let mut last_check = Instant::now();
        let mut prefetched_from = u32::MAX;
        let mut pages = self.rel_pages;
        while pages > self.counts.nonempty {
            if pages.is_multiple_of(32) && last_check.elapsed() >= LOCK_CHECK_INTERVAL {
                if lock.has_waiters() {
                    self.tell(format!(
                        "table \"{}\": suspending truncate due to conflicting lock request",
                        self.names.table
                    ));
                    return Checked { pages, lock_wanted: true };
                }
                last_check = Instant::now();
            }
            // No delay point: the lock is not to be held for longer than needed.
            check_for_interrupts();
            let block = pages - 1;
            if prefetched_from > block {
                prefetched_from = block & !(PREFETCH_SIZE - 1);
                lock.prefetch(prefetched_from, block);
            }
            if lock.has_items(block, self.strategy) {
                return Checked { pages, lock_wanted: false };
            }
            pages = block;
        }
        Checked { pages: self.counts.nonempty, lock_wanted: false }
    }
}

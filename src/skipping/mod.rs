//! The rule: which blocks of a heap VACUUM reads, and which it skips.
//!
//! Pure Rust over an abstract visibility map; nothing here calls the server,
//! so everything here can be tested against a plain restatement of the rule.
//!
//! The rule is that of PostgreSQL 18's vacuumlazy.c
//! (`heap_vac_scan_next_block`, `find_next_unskippable_block`):
//!
//! 1. A block that is not all-visible is **unskippable**.
//! 2. So is the last block of the relation: VACUUM must learn from it whether
//!    truncation is possible.
//! 3. A block that is all-frozen can be skipped by any vacuum.
//! 4. A block that is all-visible but not all-frozen can be skipped unless the
//!    vacuum is **aggressive**.
//! 5. Consecutive blocks that can be skipped form a **skippable range**. It is
//!    skipped if it has at least as many blocks as the threshold
//!    (`SKIP_PAGES_THRESHOLD`, 32 in the server), and read otherwise.
//!
//! Left out on purpose, except for a real VACUUM ([`VacuumBlocks`]): the eager
//! scanning of PostgreSQL 18, by which a normal vacuum reads some all-visible
//! blocks to freeze them early. Where it starts is random and how long it goes on
//! depends on what it manages to freeze, so no map alone can tell.
//!
//! Block numbers are `u32`. A relation has at most 2^32 - 1 blocks, so a count
//! of the blocks of one relation fits too; sums over several are `u64`.

mod blocks;
mod eager;
mod gaps;
mod map;
mod picture;
mod ranges;
mod sweep;

pub use blocks::{BlocksToScan, SkipCounts};
pub use eager::{EAGER_SCAN_REGION_SIZE, EagerScan, Skipping, VacuumBlock, VacuumBlocks};
pub use gaps::{Gap, gaps};
pub use map::{PAGES_PER_WORD, VisibilityMap};
pub use picture::Picture;
pub use ranges::{Action, Kind, Range, Ranges, Reason, Threshold};
pub use sweep::{Plan, sweep};

/// `part` of `whole` in per cent; 0 where there is nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod oracle;

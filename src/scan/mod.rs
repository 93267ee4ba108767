//! The read-only lazy heap scan: the first phase of VACUUM without its writes.
//!
//! Follows vacuumlazy.c's `lazy_scan_heap`, step by step:
//!
//! 1. The number of blocks and the cutoffs are fixed at the beginning; blocks
//!    added later are not read, as in VACUUM.
//! 2. Which block comes next is decided by the rule of [`crate::skipping`] from
//!    the visibility map as it is when the scan gets there.
//! 3. The kernel is told of the blocks to come ([`crate::reading`]), and the blocks
//!    are read through a ring of shared buffers.
//! 4. What VACUUM would find on each page is counted under a share lock.
//!    Nothing is pruned, frozen, or marked in the map.
//!
//! Left out beside the writes: eager scanning (see [`crate::skipping`]) and the
//! cost-based delay, since this is a query and not maintenance.

mod ranges;

use std::time::Instant;

use ranges::Limits;
pub use ranges::{RangeBatches, ranges};

use crate::reading::{ReadOptions, reader};
use crate::server::buffer_usage::{BufferUsage, Meter};
use crate::server::error::UserError;
use crate::server::interrupts::check_for_interrupts;
use crate::server::page::{PageCounts, count_page};
use crate::server::progress::HeapScanProgress;
use crate::server::reader::Strategy;
use crate::server::relation::HeapRelation;
use crate::skipping::{BlocksToScan, SkipCounts, Threshold};

/// How to scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// From how many consecutive skippable pages on they are skipped.
    pub threshold: Threshold,
    /// How pages are read.
    pub reading: ReadOptions,
}

/// What a scan read and found.
#[derive(Clone, Copy, Debug)]
pub struct ScanResult {
    /// A vacuum would have been aggressive.
    pub aggressive: bool,
    /// Blocks of the relation when the scan began.
    pub rel_pages: u32,
    /// What was read and what was skipped.
    pub skips: SkipCounts,
    /// What was on the pages that were read.
    pub pages: PageCounts,
    /// Buffers used, those of the visibility map included.
    pub buffers: BufferUsage,
    /// Milliseconds from beginning to end.
    pub elapsed_ms: f64,
}

/// Scans `relation`.
///
/// # Errors
///
/// XX001 for a page whose line pointers lead out of it. Errors of the server,
/// such as a cancel or an invalid page, leave as panics.
pub fn scan(relation: &HeapRelation, options: ScanOptions) -> Result<ScanResult, UserError> {
    let started = Instant::now();
    let meter = Meter::start();
    let limits = Limits::of(relation);
    let Limits { cutoffs, rel_pages } = limits;
    let progress = HeapScanProgress::start(relation.oid(), rel_pages);

    let blocks = BlocksToScan::new(limits.ranges(relation, 0), options.threshold);
    let strategy = Strategy::new();
    let mut reader = reader(relation, &strategy, options.reading, blocks);

    let mut pages = PageCounts::default();
    loop {
        check_for_interrupts();
        let Some((buffer, block)) = reader.next_buffer() else { break };
        progress.reached(block);
        let found = count_page(buffer, block, relation, cutoffs.oldest_xmin)?;
        pages.add(&found);
        if found.dead_items > 0 {
            progress.found_dead_items(pages.dead_items);
        }
    }
    progress.reached(rel_pages);
    let skips = reader.finish().into_blocks().counts();
    Ok(ScanResult {
        aggressive: cutoffs.aggressive,
        rel_pages,
        skips,
        pages,
        buffers: meter.usage(),
        elapsed_ms: started.elapsed().as_micros() as f64 / 1e3,
    })
}

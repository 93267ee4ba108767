//! The blocks that a scan reads, one after the other.
//!
//! What `heap_vac_scan_next_block` is to the server's read stream, this
//! iterator is to ours. The map may change while the scan runs: each range is
//! judged once, by what the map says when the scan gets there.

use super::map::VisibilityMap;
use super::ranges::{Kind, Ranges, Threshold};

/// What was read and what was left out so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipCounts {
    /// Blocks handed out to be read.
    pub scanned_pages: u64,
    /// Blocks left out.
    pub skipped_pages: u64,
    /// Ranges that these blocks formed.
    pub skipped_ranges: u64,
    /// Blocks read only because their range was below the threshold or
    /// because they were the last block.
    pub skippable_pages_scanned: u64,
    /// A block that is all-visible but not all-frozen was left out: a vacuum
    /// that does so cannot advance relfrozenxid.
    pub skipped_all_visible: bool,
}

/// Iterates over the blocks to read, in rising order.
pub struct BlocksToScan<M> {
    ranges: Ranges<M>,
    threshold: Threshold,
    next_block: u32,
    remaining: u32,
    counts: SkipCounts,
}

impl<M: VisibilityMap> BlocksToScan<M> {
    /// The blocks of `ranges` that a vacuum with `threshold` reads.
    pub fn new(ranges: Ranges<M>, threshold: Threshold) -> Self {
        BlocksToScan { ranges, threshold, next_block: 0, remaining: 0, counts: SkipCounts::default() }
    }

    /// What has been handed out and left out up to now.
    pub fn counts(&self) -> SkipCounts {
        self.counts
    }

    /// Takes up the next range that is read; false at the end.
    fn advance(&mut self) -> bool {
        for range in self.ranges.by_ref() {
            let pages = u64::from(range.pages);
            let skipped = range.is_skipped(self.threshold);
            match range.kind {
                Kind::Skippable { any_only_all_visible } if skipped => {
                    self.counts.skipped_pages += pages;
                    self.counts.skipped_ranges += 1;
                    self.counts.skipped_all_visible |= any_only_all_visible;
                    continue;
                }
                Kind::Skippable { .. } | Kind::LastBlock => self.counts.skippable_pages_scanned += pages,
                Kind::NotAllVisible | Kind::NotAllFrozen => (),
            }
            self.next_block = range.first_block;
            self.remaining = range.pages;
            return true;
        }
        false
    }
}

impl<M: VisibilityMap> Iterator for BlocksToScan<M> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.remaining == 0 && !self.advance() {
            return None;
        }
        let block = self.next_block;
        // The last valid block is 2^32 - 2, so this cannot wrap.
        self.next_block += 1;
        self.remaining -= 1;
        self.counts.scanned_pages += 1;
        Some(block)
    }
}

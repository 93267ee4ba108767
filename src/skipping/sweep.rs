//! What every threshold would read, from one pass over the map.
//!
//! Thresholds differ only in which skippable ranges they skip. So the ranges
//! are sorted by length into the intervals between the thresholds, and sums
//! over these intervals answer for all of them.

use super::map::VisibilityMap;
use super::percent;
use super::ranges::{Kind, Ranges, Threshold};

/// What a vacuum with one threshold would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The threshold.
    pub threshold: Threshold,
    /// Blocks it would read.
    pub scanned_pages: u64,
    /// Blocks it would skip.
    pub skipped_pages: u64,
    /// Ranges that the skipped blocks form.
    pub skipped_ranges: u64,
    /// Blocks it would read only because their range is below the threshold or
    /// because they are the last block.
    pub skippable_pages_scanned: u64,
    /// Runs of adjacent blocks that it would read.
    pub read_runs: u64,
    /// It would skip a block that is all-visible but not all-frozen.
    pub skipped_all_visible: bool,
}

impl Plan {
    /// Blocks of the relation.
    pub fn rel_pages(&self) -> u64 {
        self.scanned_pages + self.skipped_pages
    }

    /// The share of the blocks that it would read, in per cent.
    pub fn scanned_percent(&self) -> f64 {
        percent(self.scanned_pages, self.rel_pages())
    }
}

/// Skippable ranges, added up.
#[derive(Clone, Copy, Default)]
struct Sum {
    pages: u64,
    ranges: u64,
    /// Ranges that begin with the first block: no run of reads precedes them.
    at_first_block: u64,
    any_only_all_visible: bool,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.pages += other.pages;
        self.ranges += other.ranges;
        self.at_first_block += other.at_first_block;
        self.any_only_all_visible |= other.any_only_all_visible;
    }
}

/// What a vacuum would do with each of `thresholds`, in their order.
///
/// Time: one pass over the map. Memory: a few words a threshold.
pub fn sweep<M: VisibilityMap>(ranges: Ranges<M>, thresholds: &[Threshold]) -> Vec<Plan> {
    let rel_pages = u64::from(ranges.rel_pages());
    let mut limits = thresholds.to_vec();
    limits.sort_unstable();
    limits.dedup();

    // sums[i]: the ranges that the i lowest thresholds skip and no other does.
    let mut sums = vec![Sum::default(); limits.len() + 1];
    let mut last_block_skippable = 0;
    for range in ranges {
        match range.kind {
            Kind::Skippable { any_only_all_visible } => {
                // Not a binary search: lengths are random, so its branches
                // would be predicted wrongly half of the time.
                let skipped_by = limits.iter().filter(|limit| limit.skips(range.pages)).count();
                sums[skipped_by].add(Sum {
                    pages: u64::from(range.pages),
                    ranges: 1,
                    at_first_block: u64::from(range.first_block == 0),
                    any_only_all_visible,
                });
            }
            Kind::LastBlock => last_block_skippable = 1,
            Kind::NotAllVisible | Kind::NotAllFrozen => (),
        }
    }

    // From here on sums[i]: the ranges that the i lowest thresholds all skip.
    for i in (0..limits.len()).rev() {
        let longer = sums[i + 1];
        sums[i].add(longer);
    }
    let skippable_pages = sums[0].pages + last_block_skippable;
    let plan = |&threshold: &Threshold| {
        let skipped = sums[limits.partition_point(|&limit| limit <= threshold)];
        Plan {
            threshold,
            scanned_pages: rel_pages - skipped.pages,
            skipped_pages: skipped.pages,
            skipped_ranges: skipped.ranges,
            skippable_pages_scanned: skippable_pages - skipped.pages,
            // The last block is always read, so a run of reads follows each
            // skipped range.
            read_runs: u64::from(rel_pages > 0) + skipped.ranges - skipped.at_first_block,
            skipped_all_visible: skipped.any_only_all_visible,
        }
    };
    thresholds.iter().map(plan).collect()
}

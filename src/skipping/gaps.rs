//! How long the skippable ranges are: a histogram in powers of two.

use super::map::VisibilityMap;
use super::ranges::{Kind, Ranges};

/// The skippable ranges of `from_pages` to `to_pages` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The shortest length counted here, a power of two.
    pub from_pages: u64,
    /// The longest length counted here, one less than the next power of two.
    pub to_pages: u64,
    /// How many ranges.
    pub ranges: u64,
    /// How many blocks they have together.
    pub pages: u64,
}

/// The histogram, shortest first, up to the longest range there is; empty
/// where there is no skippable range.
pub fn gaps<M: VisibilityMap>(ranges: Ranges<M>) -> Vec<Gap> {
    let mut histogram = Vec::new();
    for range in ranges {
        if let Kind::Skippable { .. } = range.kind {
            let power = range.pages.ilog2() as usize;
            while histogram.len() <= power {
                let from_pages = 1u64 << histogram.len();
                histogram.push(Gap { from_pages, to_pages: 2 * from_pages - 1, ranges: 0, pages: 0 });
            }
            histogram[power].ranges += 1;
            histogram[power].pages += u64::from(range.pages);
        }
    }
    histogram
}

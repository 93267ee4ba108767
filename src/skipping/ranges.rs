//! Cuts a relation into ranges of blocks that share one fate.
//!
//! One pass over the map, a word of 32 pages at a time, in memory that does
//! not depend on the size of the relation.

use super::map::{PAGES_PER_WORD, Pages, VisibilityMap};

/// How many consecutive skippable blocks it takes to skip them.
///
/// 0 and 1 both skip every skippable block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(u32);

impl Threshold {
    /// A threshold of `blocks` blocks.
    pub fn new(blocks: u32) -> Self {
        Threshold(blocks)
    }

    /// The number of blocks.
    pub fn blocks(self) -> u32 {
        self.0
    }

    /// Whether a skippable range of `pages` blocks is skipped.
    pub fn skips(self, pages: u32) -> bool {
        pages >= self.0
    }
}

/// What the map says of a range, before any threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Must be read: not all-visible.
    NotAllVisible,
    /// Must be read by an aggressive vacuum: all-visible but not all-frozen.
    NotAllFrozen,
    /// Must be read although it could be skipped by its bits: the last block.
    LastBlock,
    /// Skipped, if it is long enough.
    Skippable {
        /// Some of its blocks are all-visible but not all-frozen, so that a
        /// vacuum that skips it cannot advance relfrozenxid.
        any_only_all_visible: bool,
    },
}

/// Consecutive blocks of one kind, as many as there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first block.
    pub first_block: u32,
    /// How many blocks, at least one.
    pub pages: u32,
    /// Their kind.
    pub kind: Kind,
}

/// What a vacuum does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads it.
    Scan,
    /// Leaves it out.
    Skip,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Read because not all-visible.
    NotAllVisible,
    /// Skipped because all-visible, some of it not all-frozen; or read for
    /// that, by an aggressive vacuum.
    AllVisible,
    /// Skipped because all-frozen.
    AllFrozen,
    /// Read because too short to be skipped.
    BelowThreshold,
    /// Read because it is the last block.
    LastBlock,
}

impl Range {
    /// The last block.
    pub fn last_block(&self) -> u32 {
        self.first_block + (self.pages - 1)
    }

    /// Whether a vacuum with `threshold` skips this range.
    pub fn is_skipped(&self, threshold: Threshold) -> bool {
        matches!(self.kind, Kind::Skippable { .. }) && threshold.skips(self.pages)
    }

    /// What a vacuum with `threshold` does with this range, and why.
    pub fn decide(&self, threshold: Threshold) -> (Action, Reason) {
        match self.kind {
            Kind::NotAllVisible => (Action::Scan, Reason::NotAllVisible),
            Kind::NotAllFrozen => (Action::Scan, Reason::AllVisible),
            Kind::LastBlock => (Action::Scan, Reason::LastBlock),
            Kind::Skippable { .. } if !threshold.skips(self.pages) => (Action::Scan, Reason::BelowThreshold),
            Kind::Skippable { any_only_all_visible: true } => (Action::Skip, Reason::AllVisible),
            Kind::Skippable { any_only_all_visible: false } => (Action::Skip, Reason::AllFrozen),
        }
    }
}

/// The ranges of a relation in block order; together they cover it exactly.
pub struct Ranges<M> {
    map: M,
    rel_pages: u32,
    aggressive: bool,
    next_block: u32,
}

impl<M: VisibilityMap> Ranges<M> {
    /// The ranges of a relation of `rel_pages` blocks, as a vacuum sees them
    /// that is `aggressive` or not.
    pub fn new(map: M, rel_pages: u32, aggressive: bool) -> Self {
        Self::starting_at(map, rel_pages, aggressive, 0)
    }

    /// The same from block `first_block` on, which must be the first block of
    /// a range.
    pub fn starting_at(map: M, rel_pages: u32, aggressive: bool, first_block: u32) -> Self {
        Ranges { map, rel_pages, aggressive, next_block: first_block }
    }

    /// How many blocks the relation has.
    pub fn rel_pages(&self) -> u32 {
        self.rel_pages
    }

    /// The kind of the range that starts at `block`.
    fn kind_at(&mut self, block: u32) -> Kind {
        let word = self.map.word(block / PAGES_PER_WORD);
        let offset = block % PAGES_PER_WORD;
        if Pages::not_all_visible(word).contains(offset) {
            Kind::NotAllVisible
        } else if !Pages::skippable(word, self.aggressive).contains(offset) {
            Kind::NotAllFrozen
        } else if block == self.rel_pages - 1 {
            Kind::LastBlock
        } else {
            Kind::Skippable { any_only_all_visible: false }
        }
    }

    /// The first block after `first_block` whose page `belongs` rejects, at
    /// most `limit`. `seen` is shown each word and the part of it that is in
    /// the range.
    ///
    /// `first_block` itself is in, whatever the map says by now.
    fn end_of_run(
        &mut self,
        first_block: u32,
        limit: u32,
        belongs: impl Fn(u64) -> Pages,
        mut seen: impl FnMut(u64, u32, u32),
    ) -> u32 {
        let mut index = first_block / PAGES_PER_WORD;
        let mut from = first_block % PAGES_PER_WORD;
        let mut at_least = from + 1;
        loop {
            let word = self.map.word(index);
            let to = belongs(word).first_gap(from).max(at_least);
            let base = u64::from(index) * u64::from(PAGES_PER_WORD);
            let end = (base + u64::from(to)).min(u64::from(limit));
            if end > base + u64::from(from) {
                seen(word, from, (end - base) as u32);
            }
            if to < PAGES_PER_WORD || end == u64::from(limit) {
                return end as u32;
            }
            (index, from, at_least) = (index + 1, 0, 0);
        }
    }
}

impl<M: VisibilityMap> Iterator for Ranges<M> {
    type Item = Range;

    fn next(&mut self) -> Option<Range> {
        if self.next_block >= self.rel_pages {
            return None;
        }
        let (first_block, aggressive) = (self.next_block, self.aggressive);
        let mut kind = self.kind_at(first_block);
        let end = match &mut kind {
            Kind::NotAllVisible => {
                self.end_of_run(first_block, self.rel_pages, Pages::not_all_visible, |_, _, _| ())
            }
            Kind::NotAllFrozen => {
                self.end_of_run(first_block, self.rel_pages, Pages::only_all_visible, |_, _, _| ())
            }
            Kind::LastBlock => self.rel_pages,
            Kind::Skippable { any_only_all_visible } => {
                let belongs = |word| Pages::skippable(word, aggressive);
                self.end_of_run(first_block, self.rel_pages - 1, belongs, |word, from, to| {
                    *any_only_all_visible |= Pages::only_all_visible(word).any_within(from, to);
                })
            }
        };
        self.next_block = end;
        Some(Range { first_block, pages: end - first_block, kind })
    }
}

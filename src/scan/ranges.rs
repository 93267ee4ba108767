//! The rule, applied to a relation of the server.

use crate::server::cutoffs::Cutoffs;
use crate::server::relation::HeapRelation;
use crate::server::visibility_map::PinnedMap;
use crate::skipping::{Range, Ranges};

/// What a plain VACUUM fixes when it begins.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Up to where it would remove and freeze.
    pub cutoffs: Cutoffs,
    /// How many blocks it would look at: those there are.
    pub rel_pages: u32,
}

impl Limits {
    /// Those of one that began now.
    pub fn of(relation: &HeapRelation) -> Limits {
        // In this order, as VACUUM: what is added later has nothing to remove.
        let cutoffs = Cutoffs::of(relation);
        Limits { cutoffs, rel_pages: relation.pages() }
    }

    /// The ranges of `relation` as it would see them, from block `first_block` on,
    /// which must be the first block of one.
    pub fn ranges<'rel>(&self, relation: &'rel HeapRelation, first_block: u32) -> Ranges<PinnedMap<'rel>> {
        Ranges::starting_at(PinnedMap::new(relation), self.rel_pages, self.cutoffs.aggressive, first_block)
    }
}

/// The ranges of `relation` as a plain VACUUM that began now would see them.
pub fn ranges(relation: &HeapRelation) -> Ranges<PinnedMap<'_>> {
    Limits::of(relation).ranges(relation, 0)
}

/// The ranges of a relation, a batch at a time: there may be too many to keep.
///
/// Between two batches nothing is pinned, open or locked, so that a cursor may
/// stop at any row.
pub struct RangeBatches<F> {
    open: F,
    /// Known from the first batch on.
    limits: Option<Limits>,
    next_block: u32,
    batch: std::vec::IntoIter<Range>,
}

impl<F: Fn() -> HeapRelation> RangeBatches<F> {
    const BATCH: usize = 1000;

    /// Those of the relation that `open` opens, once for each batch.
    pub fn new(open: F) -> Self {
        RangeBatches { open, limits: None, next_block: 0, batch: Vec::new().into_iter() }
    }

    fn next_batch(&mut self) -> Vec<Range> {
        let relation = (self.open)();
        let limits = self.limits.get_or_insert_with(|| Limits::of(&relation));
        // It may have been truncated since the batch before.
        limits.rel_pages = limits.rel_pages.min(relation.pages());
        limits.ranges(&relation, self.next_block).take(Self::BATCH).collect()
    }
}

impl<F: Fn() -> HeapRelation> Iterator for RangeBatches<F> {
    type Item = Range;

    fn next(&mut self) -> Option<Range> {
        let at_end = self.limits.is_some_and(|limits| self.next_block >= limits.rel_pages);
        if self.batch.len() == 0 && !at_end {
            self.batch = self.next_batch().into_iter();
        }
        let range = self.batch.next()?;
        self.next_block = range.first_block + range.pages;
        Some(range)
    }
}

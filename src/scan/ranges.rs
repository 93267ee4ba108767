//! The rule, applied to a relation of the server.

use crate::server::cutoffs::Cutoffs;
use crate::server::relation::HeapRelation;
use crate::server::visibility_map::PinnedMap;
use crate::skipping::{PAGES_PER_WORD, Ranges, VisibilityMap};

// The server's words are the rule's words.
const _: () = assert!(PAGES_PER_WORD == u64::BITS / 2);

impl VisibilityMap for PinnedMap<'_> {
    #[inline]
    fn word(&mut self, index: u32) -> u64 {
        PinnedMap::word(self, index)
    }
}

/// The ranges of `relation` as a plain VACUUM that began now would see them.
pub fn ranges(relation: &HeapRelation) -> Ranges<PinnedMap<'_>> {
    // In this order, as VACUUM: what is added later has nothing to remove.
    let aggressive = Cutoffs::of(relation).aggressive;
    Ranges::new(PinnedMap::new(relation), relation.pages(), aggressive)
}

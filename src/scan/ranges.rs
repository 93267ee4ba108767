//! The rule, applied to a relation of the server.

use crate::server::relation::HeapRelation;
use crate::server::visibility_map::PinnedMap;
use crate::skipping::{Ranges, VisibilityMap};

impl VisibilityMap for PinnedMap<'_> {
    #[inline]
    fn word(&mut self, index: u32) -> u64 {
        PinnedMap::word(self, index)
    }
}

/// The ranges of `relation` as a plain VACUUM that began now would see them.
pub fn ranges(relation: &HeapRelation) -> Ranges<PinnedMap<'_>> {
    Ranges::new(PinnedMap::new(relation), relation.pages(), relation.cutoffs().aggressive)
}

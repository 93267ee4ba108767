//! The visibility map as the rule sees it: words of two bits a page.
//!
//! The layout is that of the server's visibility map (visibilitymap.c): two
//! bits a page, all-visible in the lower and all-frozen in the upper one,
//! pages in rising order from the least significant bit.

/// Pages that one word of the map describes.
pub const PAGES_PER_WORD: u32 = u64::BITS / 2;

/// The all-visible bit of each page of a word.
const ALL_VISIBLE: u64 = 0x5555_5555_5555_5555;

/// A source of visibility bits.
pub trait VisibilityMap {
    /// The bits of pages `32 * index` to `32 * index + 31`, the first page in
    /// the two least significant bits. Zero where the map has no such page.
    ///
    /// Bits may change between two calls: the answer is what the map says now.
    fn word(&mut self, index: u32) -> u64;
}

impl<M: VisibilityMap + ?Sized> VisibilityMap for &mut M {
    fn word(&mut self, index: u32) -> u64 {
        (**self).word(index)
    }
}

/// Pages of one word, one bit each, in the position of the all-visible bit.
#[derive(Clone, Copy)]
pub(super) struct Pages(u64);

impl Pages {
    /// Pages of `word` whose all-visible bit is not set.
    pub(super) fn not_all_visible(word: u64) -> Self {
        Pages(!word & ALL_VISIBLE)
    }

    /// Pages of `word` that are all-visible but not all-frozen.
    pub(super) fn only_all_visible(word: u64) -> Self {
        Pages(word & !(word >> 1) & ALL_VISIBLE)
    }

    /// Pages of `word` that a vacuum can skip. An aggressive one skips only
    /// what is all-frozen; an all-frozen bit without an all-visible bit, which
    /// the server never writes, counts as not all-visible.
    pub(super) fn skippable(word: u64, aggressive: bool) -> Self {
        let required = if aggressive { word >> 1 } else { u64::MAX };
        Pages(word & required & ALL_VISIBLE)
    }

    /// Whether the page at `offset` (0 to 31) is one of them.
    pub(super) fn contains(self, offset: u32) -> bool {
        self.0 >> (2 * offset) & 1 != 0
    }

    /// The first offset from `from` (0 to 31) on whose page is not one of
    /// them, or 32 if they all are.
    pub(super) fn first_gap(self, from: u32) -> u32 {
        let missing = (!self.0 & ALL_VISIBLE) >> (2 * from) << (2 * from);
        missing.trailing_zeros() / 2
    }

    /// Whether any page at an offset of `from` to `to - 1` is one of them
    /// (`from < to <= 32`).
    pub(super) fn any_within(self, from: u32, to: u32) -> bool {
        let upper = u64::MAX >> (u64::BITS - 2 * to);
        let lower = u64::MAX << (2 * from);
        self.0 & upper & lower != 0
    }
}

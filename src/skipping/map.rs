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
    /// No page.
    pub(super) const NONE: Pages = Pages(0);

    /// The page at `offset` (0 to 31).
    pub(super) fn one(offset: u32) -> Self {
        Pages(1 << (2 * offset))
    }

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

    /// These pages and those.
    pub(super) fn or(self, other: Pages) -> Self {
        Pages(self.0 | other.0)
    }

    /// Those of them before `offset` (0 to 32).
    pub(super) fn before(self, offset: u32) -> Self {
        Pages(self.0 & !Self::at_or_after(offset))
    }

    /// Those of them at `offset` (0 to 32) or after.
    pub(super) fn without_before(self, offset: u32) -> Self {
        Pages(self.0 & Self::at_or_after(offset))
    }

    fn at_or_after(offset: u32) -> u64 {
        // Two shifts, since one by 64 bits is none.
        u64::MAX << offset << offset
    }

    /// The pages of this word that are one of them while the page before is
    /// not, or the other way round. `previous` are those of the word before.
    pub(super) fn changes(self, previous: Pages) -> Self {
        Pages(self.0 ^ (self.0 << 2 | previous.0 >> 62))
    }

    /// Whether the page at `offset` (0 to 31) is one of them.
    pub(super) fn contains(self, offset: u32) -> bool {
        self.0 >> (2 * offset) & 1 != 0
    }

    /// Whether there is none of them.
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The offset of the first of them, or 32 if there is none.
    pub(super) fn first(self) -> u32 {
        self.0.trailing_zeros() / 2
    }

    /// All but the first of them.
    pub(super) fn without_first(self) -> Self {
        Pages(self.0 & self.0.wrapping_sub(1))
    }
}

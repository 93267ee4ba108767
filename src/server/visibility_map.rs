//! The visibility map of a relation, read from its pinned buffers.
//!
//! The server's `visibilitymap_get_status` looks at one page a call. This
//! pins each page of the map once with that function and then reads the bits
//! of 32 heap pages at a time.

use pgrx::pg_sys;

use super::boundary::guarded;
use super::interrupts::check_for_interrupts;
use super::page::HEADER;
use super::reader::{INVALID_BUFFER, page_of};
use super::relation::HeapRelation;
use super::{let_go, raw};

/// Heap pages that one word of the map describes, two bits each.
const PAGES_PER_WORD: u32 = u64::BITS / 2;

/// Words of bits on a page of the map.
const WORDS_PER_MAP_PAGE: u32 = ((pg_sys::BLCKSZ as usize - HEADER) / size_of::<u64>()) as u32;

/// The map of a relation; holds a pin on at most one of its pages.
///
/// Bits are read without a lock, as the server does: they may be out of date
/// as soon as they are read. A map that is missing, or shorter than the heap,
/// reads as zeros. Cancel is answered once for each page of the map.
pub struct PinnedMap<'rel> {
    relation: &'rel HeapRelation,
    buffer: pg_sys::Buffer,
    /// The words on the page pinned now, and which is the first of them.
    words: *const u64,
    first_word: u32,
    /// How many there are: none before anything was pinned.
    pinned_words: u32,
}

impl<'rel> PinnedMap<'rel> {
    /// The map of `relation`, nothing pinned yet.
    pub fn new(relation: &'rel HeapRelation) -> Self {
        PinnedMap {
            relation,
            buffer: INVALID_BUFFER,
            words: std::ptr::null(),
            first_word: 0,
            pinned_words: 0,
        }
    }

    /// Pins the page of the map that has word `index` in place of the one pinned
    /// now.
    #[cold]
    fn pin(&mut self, index: u32) {
        check_for_interrupts();
        self.first_word = index - index % WORDS_PER_MAP_PAGE;
        self.pinned_words = WORDS_PER_MAP_PAGE;
        let heap_block = self.first_word * PAGES_PER_WORD;
        // SAFETY: the relation is open, and `buffer` is InvalidBuffer or a pin
        // on this map, which the call releases or keeps.
        unsafe {
            guarded(|| raw::visibilitymap_get_status(self.relation.as_ptr(), heap_block, &mut self.buffer));
            self.words = match self.buffer {
                INVALID_BUFFER => std::ptr::null(),
                buffer => page_of(buffer).add(HEADER).cast(),
            };
        }
    }

    /// The bits of heap pages `32 * index` to `32 * index + 31`, the first page in
    /// the two least significant bits; zero where the map has no such page.
    #[inline]
    pub fn word(&mut self, index: u32) -> u64 {
        if index.wrapping_sub(self.first_word) >= self.pinned_words {
            self.pin(index);
        }
        if self.words.is_null() {
            return 0;
        }
        // SAFETY: the page is pinned, so it stays in its buffer; the index is
        // within it; buffers are aligned to far more than 8 bytes. Others may
        // write bytes of the word meanwhile, so it is read as volatile, once.
        let word = unsafe { self.words.add((index - self.first_word) as usize).read_volatile() };
        u64::from_le(word)
    }
}

impl Drop for PinnedMap<'_> {
    fn drop(&mut self) {
        if self.buffer != INVALID_BUFFER {
            // SAFETY: the pin is ours and is released only here.
            let_go(|| unsafe { pg_sys::ReleaseBuffer(self.buffer) });
        }
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use super::*;

    /// One row a page, so many that the map has a second page.
    const PAGES: u32 = WORDS_PER_MAP_PAGE * PAGES_PER_WORD + 100;

    #[pg_test]
    fn test_words_are_the_servers_bits() {
        Spi::run(&format!(
            "CREATE TABLE wide (id int, filler char(4100)) WITH (autovacuum_enabled = off);
             ALTER TABLE wide ALTER filler SET STORAGE plain;
             INSERT INTO wide SELECT i, '' FROM generate_series(1, {PAGES}) AS i"
        ))
        .unwrap();
        let oid = Spi::get_one::<pg_sys::Oid>("SELECT 'wide'::regclass::oid").unwrap().unwrap();
        let relation = HeapRelation::open(oid).unwrap();
        assert_eq!(relation.pages(), PAGES);
        set_bits(&relation);

        let mut map = PinnedMap::new(&relation);
        let mut server_buffer = INVALID_BUFFER;
        for block in 0..PAGES {
            let word = map.word(block / PAGES_PER_WORD);
            let ours = (word >> (2 * (block % PAGES_PER_WORD)) & 3) as u8;
            // SAFETY: the relation is open; the buffer is released below.
            let servers =
                unsafe { pg_sys::visibilitymap_get_status(relation.as_ptr(), block, &mut server_buffer) };
            assert_eq!(ours, servers, "block {block}");
            assert_eq!(ours, wanted_bits(block), "block {block}");
        }
        // SAFETY: the pin is ours.
        unsafe { pg_sys::ReleaseBuffer(server_buffer) };
        assert_eq!(map.word(u32::MAX / PAGES_PER_WORD), 0, "beyond the end of the map");
    }

    /// Bits that differ from page to page and from word to word.
    fn wanted_bits(block: u32) -> u8 {
        match block % 7 {
            0 | 3 => 0,
            1 | 4 => pg_sys::VISIBILITYMAP_ALL_VISIBLE as u8,
            _ => (pg_sys::VISIBILITYMAP_ALL_VISIBLE | pg_sys::VISIBILITYMAP_ALL_FROZEN) as u8,
        }
    }

    /// Writes the bits as VACUUM would: a vacuum itself cannot run in a test's
    /// transaction.
    fn set_bits(relation: &HeapRelation) {
        let mut map_buffer = INVALID_BUFFER;
        // SAFETY: the page is pinned and locked while its flag and its bits are
        // set; the table is of this transaction, so nobody else reads them.
        unsafe {
            for block in (0..PAGES).filter(|&block| wanted_bits(block) != 0) {
                pg_sys::visibilitymap_pin(relation.as_ptr(), block, &mut map_buffer);
                let buffer = pg_sys::ReadBuffer(relation.as_ptr(), block);
                pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
                pg_sys::PageSetAllVisible(page_of(buffer).cast_mut().cast());
                pg_sys::MarkBufferDirty(buffer);
                pg_sys::visibilitymap_set(
                    relation.as_ptr(),
                    block,
                    buffer,
                    pg_sys::InvalidXLogRecPtr.into(),
                    map_buffer,
                    pg_sys::InvalidTransactionId,
                    wanted_bits(block),
                );
                pg_sys::UnlockReleaseBuffer(buffer);
            }
            pg_sys::ReleaseBuffer(map_buffer);
        }
    }
}

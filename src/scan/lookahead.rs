//! Blocks taken from the rule ahead of time, so that the kernel can be told.

use std::collections::VecDeque;

use crate::server::prefetch::Prefetcher;

/// The most blocks in one hint: 256 kB, enough to make a request worth its
/// while, few enough that the first of them is not kept waiting.
const LONGEST_HINT: u32 = 32;

/// Hands blocks on in their order, and gives hints about those to come.
///
/// Memory: four bytes for each block of the distance.
pub struct Lookahead<'rel, B> {
    blocks: B,
    hints: Option<Hints<'rel>>,
    distance: usize,
    waiting: VecDeque<u32>,
}

impl<'rel, B: Iterator<Item = u32>> Lookahead<'rel, B> {
    /// Keeps `distance` blocks ahead where there is a prefetcher, else none.
    pub fn new(blocks: B, prefetcher: Option<Prefetcher<'rel>>, distance: usize) -> Self {
        let hints = prefetcher.filter(|_| distance > 0).map(|prefetcher| Hints {
            prefetcher,
            // A hint must not wait until its first block is to be read.
            longest: LONGEST_HINT.min(distance.div_ceil(4) as u32),
            first_block: 0,
            blocks: 0,
        });
        Lookahead { blocks, hints, distance, waiting: VecDeque::with_capacity(distance) }
    }

    /// Gives the iterator back.
    pub fn into_blocks(self) -> B {
        self.blocks
    }
}

impl<B: Iterator<Item = u32>> Iterator for Lookahead<'_, B> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let Some(hints) = &mut self.hints else { return self.blocks.next() };
        while self.waiting.len() < self.distance {
            let Some(block) = self.blocks.next() else {
                hints.give();
                break;
            };
            hints.add(block);
            self.waiting.push_back(block);
        }
        self.waiting.pop_front()
    }
}

/// Gathers adjacent blocks into one hint.
struct Hints<'rel> {
    prefetcher: Prefetcher<'rel>,
    longest: u32,
    first_block: u32,
    blocks: u32,
}

impl Hints<'_> {
    fn add(&mut self, block: u32) {
        if self.blocks == self.longest || block != self.first_block + self.blocks {
            self.give();
            self.first_block = block;
        }
        self.blocks += 1;
    }

    fn give(&mut self) {
        if self.blocks > 0 {
            self.prefetcher.hint(self.first_block, self.blocks);
            self.blocks = 0;
        }
    }
}

//! Blocks taken from the rule ahead of time, so that the kernel can be told.

use std::collections::VecDeque;

use crate::server::prefetch::{Prefetcher, Resident};

/// The most blocks in one hint: 256 kB, enough to make a request worth its
/// while, few enough that the first of them is not kept waiting.
const LONGEST_HINT: usize = 32;

/// Hands blocks on in their order, and gives hints about those to come.
///
/// Memory: some bytes for each block of the distance.
pub struct Lookahead<'rel, B> {
    blocks: B,
    hints: Option<Prefetcher<'rel>>,
    distance: usize,
    longest_hint: usize,
    waiting: VecDeque<Waiting>,
    /// How many of the last blocks that wait form a run of adjacent ones about
    /// which no hint was given yet.
    unhinted: usize,
}

/// A block that will be handed on later.
struct Waiting {
    block: u32,
    resident: Resident,
}

impl<'rel, B: Iterator<Item = u32>> Lookahead<'rel, B> {
    /// Keeps `distance` blocks ahead where there is a prefetcher, else none.
    pub fn new(blocks: B, prefetcher: Option<Prefetcher<'rel>>, distance: usize) -> Self {
        Lookahead {
            blocks,
            hints: prefetcher.filter(|_| distance > 0),
            distance,
            // A hint must not wait until its first block is to be read.
            longest_hint: LONGEST_HINT.min(distance.div_ceil(4)),
            waiting: VecDeque::with_capacity(distance),
            unhinted: 0,
        }
    }

    /// Whether the kernel is told of the blocks.
    pub fn gives_hints(&self) -> bool {
        self.hints.is_some()
    }

    /// Gives the iterator back.
    pub fn into_blocks(self) -> B {
        self.blocks
    }

    /// Takes blocks from the rule until enough wait.
    fn fill(&mut self) {
        while self.waiting.len() < self.distance {
            let Some(block) = self.blocks.next() else {
                self.give_hint();
                return;
            };
            let continues_run = self.waiting.back().is_some_and(|last| last.block + 1 == block);
            if !continues_run || self.unhinted == self.longest_hint {
                self.give_hint();
            }
            self.waiting.push_back(Waiting {
                block,
                resident: Resident::default(),
            });
            self.unhinted += 1;
        }
    }

    /// Gives the hint about the last run.
    fn give_hint(&mut self) {
        let Some(hints) = self.hints.as_ref().filter(|_| self.unhinted > 0) else {
            return;
        };
        let run = self.waiting.len() - self.unhinted;
        let mut places = [Resident::default(); LONGEST_HINT];
        let places = &mut places[..self.unhinted];
        hints.hint(self.waiting[run].block, places);
        for (waiting, place) in self.waiting.range_mut(run..).zip(places) {
            waiting.resident = *place;
        }
        self.unhinted = 0;
    }
}

impl<B: Iterator<Item = u32>> Iterator for Lookahead<'_, B> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.hints.is_none() {
            return self.blocks.next();
        }
        self.fill();
        let next = self.waiting.pop_front()?;
        // With a distance so short that the run is read before its hint.
        self.unhinted = self.unhinted.min(self.waiting.len());
        if let Some(second) = self.waiting.front() {
            second.resident.expect_tuples();
        }
        if let Some(third) = self.waiting.get(1) {
            third.resident.expect_header();
        }
        Some(next.block)
    }
}

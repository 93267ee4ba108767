//! Blocks taken from the rule ahead of time, so that the kernel can be told.

use std::collections::VecDeque;

use crate::server::prefetch::{Prefetcher, Resident};
use crate::server::reader::Block;

/// The most blocks in one hint: 256 kB, enough to make a request worth its
/// while, few enough that the first of them is not kept waiting.
const LONGEST_HINT: usize = 32;

/// Blocks to be read, in rising order.
pub trait Upcoming: Iterator<Item: Block> {
    /// Whether the next one can be taken before those taken already were read.
    fn may_run_ahead(&self) -> bool {
        true
    }
}

/// Who is told of blocks that will be read.
pub trait Hints {
    /// What is known of a block after a hint.
    type Place: Copy + Default;

    /// As many blocks as `places` has, from `first_block` on, will be read. Fills
    /// in what is known of them.
    fn hint(&self, first_block: u32, places: &mut [Self::Place]);

    /// A block will be read after the next one.
    fn expect_soon(&self, place: Self::Place);

    /// A block will be read next.
    fn expect_next(&self, place: Self::Place);
}

impl Hints for Prefetcher<'_> {
    type Place = Resident;

    fn hint(&self, first_block: u32, places: &mut [Resident]) {
        Prefetcher::hint(self, first_block, places);
    }

    fn expect_soon(&self, place: Resident) {
        place.expect_header();
    }

    fn expect_next(&self, place: Resident) {
        place.expect_tuples();
    }
}

/// Hands blocks on in their order, and gives hints about those to come.
///
/// Memory: some bytes for each block of the distance.
pub struct Lookahead<H: Hints, B: Iterator> {
    blocks: B,
    hints: Option<H>,
    distance: usize,
    longest_hint: usize,
    waiting: VecDeque<Waiting<B::Item, H::Place>>,
    /// How many of the last blocks that wait form a run of adjacent ones about
    /// which no hint was given yet.
    unhinted: usize,
}

/// A block that will be handed on later.
struct Waiting<B, P> {
    block: B,
    place: P,
}

impl<H: Hints, B: Upcoming> Lookahead<H, B> {
    /// Keeps `distance` blocks ahead where there is somebody to be told, else
    /// none.
    pub fn new(blocks: B, hints: Option<H>, distance: usize) -> Self {
        Lookahead {
            blocks,
            hints: hints.filter(|_| distance > 0),
            distance,
            // So short that no block is handed on before its hint was given.
            longest_hint: LONGEST_HINT.min(distance.div_ceil(4)),
            waiting: VecDeque::with_capacity(distance),
            unhinted: 0,
        }
    }

    /// Whether anybody is told of the blocks.
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
            if !self.waiting.is_empty() && !self.blocks.may_run_ahead() {
                self.give_hint();
                return;
            }
            let Some(block) = self.blocks.next() else {
                self.give_hint();
                return;
            };
            if self.waiting.back().is_some_and(|last| last.block.number() + 1 != block.number()) {
                self.give_hint();
            }
            self.waiting.push_back(Waiting { block, place: H::Place::default() });
            self.unhinted += 1;
            if self.unhinted == self.longest_hint {
                self.give_hint();
            }
        }
    }

    /// Gives the hint about the last run.
    fn give_hint(&mut self) {
        let Some(hints) = self.hints.as_ref().filter(|_| self.unhinted > 0) else {
            return;
        };
        let run = self.waiting.len() - self.unhinted;
        let mut places = [H::Place::default(); LONGEST_HINT];
        let places = &mut places[..self.unhinted];
        hints.hint(self.waiting[run].block.number(), places);
        for (waiting, place) in self.waiting.range_mut(run..).zip(places) {
            waiting.place = *place;
        }
        self.unhinted = 0;
    }
}

impl<H: Hints, B: Upcoming> Iterator for Lookahead<H, B> {
    type Item = B::Item;

    fn next(&mut self) -> Option<B::Item> {
        if self.hints.is_none() {
            return self.blocks.next();
        }
        self.fill();
        let next = self.waiting.pop_front()?;
        if let (Some(hints), Some(second)) = (&self.hints, self.waiting.front()) {
            hints.expect_next(second.place);
        }
        if let (Some(hints), Some(third)) = (&self.hints, self.waiting.get(1)) {
            hints.expect_soon(third.place);
        }
        Some(next.block)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use proptest::prelude::*;

    use super::*;

    /// Remembers what it was told.
    #[derive(Default)]
    struct Listener(RefCell<Vec<u32>>);

    impl Hints for &Listener {
        type Place = ();

        fn hint(&self, first_block: u32, places: &mut [()]) {
            assert!((1..=LONGEST_HINT).contains(&places.len()));
            self.0.borrow_mut().extend(first_block..first_block + places.len() as u32);
        }

        fn expect_soon(&self, _place: ()) {}

        fn expect_next(&self, _place: ()) {}
    }

    impl Upcoming for std::iter::Copied<std::slice::Iter<'_, u32>> {}

    impl Upcoming for std::ops::Range<u32> {}

    /// Blocks 0, 1, …, at most `most` of which may be taken but not done with.
    struct Hesitant<'a> {
        next: u32,
        done: &'a Cell<u32>,
        most: u32,
    }

    impl Iterator for Hesitant<'_> {
        type Item = u32;

        fn next(&mut self) -> Option<u32> {
            self.next += 1;
            (self.next <= 1000).then_some(self.next - 1)
        }
    }

    impl Upcoming for Hesitant<'_> {
        fn may_run_ahead(&self) -> bool {
            self.next - self.done.get() < self.most
        }
    }

    proptest! {
        #[test]
        fn blocks_keep_their_order_and_are_hinted_once_before(
            gaps in prop::collection::vec(prop_oneof![4 => Just(1u32), 1 => 1u32..100], 0..300),
            distance in prop_oneof![1usize..20, Just(256)],
        ) {
            let blocks: Vec<u32> = gaps.iter().scan(0, |block, gap| { *block += gap; Some(*block) }).collect();
            let listener = Listener::default();
            let mut ahead = Lookahead::new(blocks.iter().copied(), Some(&listener), distance);
            for (position, block) in blocks.iter().enumerate() {
                prop_assert_eq!(ahead.next(), Some(*block));
                let told = listener.0.borrow().len();
                prop_assert!(told > position, "block {} was handed on before its hint", block);
                prop_assert!(told <= position + distance, "more than {} blocks ahead", distance);
                let behind = (position + distance).min(blocks.len()) - told;
                prop_assert!(behind < LONGEST_HINT, "{} blocks wait for their hint", behind);
            }
            prop_assert_eq!(ahead.next(), None);
            prop_assert_eq!(listener.0.take(), blocks);
        }

        #[test]
        fn it_stops_where_it_may_not_run_ahead(most in 1u32..300, distance in 1usize..300) {
            let (listener, done) = (Listener::default(), Cell::new(0));
            let blocks = Hesitant { next: 0, done: &done, most };
            let ahead = Lookahead::new(blocks, Some(&listener), distance);
            for block in ahead {
                prop_assert_eq!(block, done.get());
                let told = listener.0.borrow().len() as u32;
                prop_assert!(told > block, "block {} was handed on before its hint", block);
                prop_assert!(told <= block + most, "{} blocks taken ahead of {}", told, block);
                done.set(block + 1);
            }
            prop_assert_eq!(done.get(), 1000);
        }

        #[test]
        fn without_hints_nothing_is_taken_ahead(length in 0u32..50, distance in 0usize..3) {
            let hints = Listener::default();
            let hints = (distance == 0).then_some(&hints);
            let mut ahead = Lookahead::new(0..length, hints, distance);
            prop_assert!(!ahead.gives_hints());
            prop_assert_eq!(ahead.next(), (length > 0).then_some(0));
            prop_assert_eq!(ahead.into_blocks(), length.min(1)..length);
        }
    }
}

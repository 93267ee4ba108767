//! Which blocks a real VACUUM reads: the rule, eager scanning and all.
//!
//! What [`super::BlocksToScan`] leaves out because no map can tell it, a VACUUM
//! knows while it runs: PostgreSQL 18's normal vacuums read some all-visible
//! blocks that they could skip, in order to freeze them before an aggressive
//! vacuum has to. Two caps keep that cheap (vacuumlazy.c, `eager_scan_*`):
//!
//! - **successes**: once as many blocks were frozen as a fifth of the blocks
//!   that were all-visible but not all-frozen at the start, eager scanning ends;
//! - **failures**: in each region of 4096 blocks, once as many blocks as
//!   vacuum_max_eager_freeze_failure_rate allows turned out to be too young, it
//!   is suspended until the next region. Where the first region ends is random,
//!   so that no vacuum fails at the same blocks as the one before.
//!
//! Follows `heap_vac_scan_next_block` and `find_next_unskippable_block`, block
//! by block. With eager scanning off it gives the blocks of `BlocksToScan`.

use std::cell::Cell;
use std::rc::Rc;

use super::map::{PAGES_PER_WORD, VisibilityMap};
use super::ranges::Threshold;

/// Blocks of a region, in which failures are counted.
pub const EAGER_SCAN_REGION_SIZE: u32 = 4096;

/// The share of the all-visible, not all-frozen blocks that may be frozen.
const MAX_EAGER_FREEZE_SUCCESS_RATE: f64 = 0.2;

/// Eager scanning as it stands: shared between who chooses blocks and who finds
/// out what became of them.
#[derive(Debug, Default)]
pub struct EagerScan {
    /// Where failures are forgiven next; None once it has ended for good.
    next_region_start: Cell<Option<u64>>,
    max_failures: Cell<u32>,
    remaining_failures: Cell<u32>,
    success_limit: u32,
    remaining_successes: Cell<u32>,
    /// Blocks chosen of which it is not known yet what became of them.
    undecided: Cell<u32>,
}

impl EagerScan {
    /// None: the vacuum is aggressive, the table is small or has nothing old
    /// enough to be frozen.
    pub fn off() -> Rc<Self> {
        Rc::default()
    }

    /// With at most `failure_rate` (above 0, up to 1) of each region's blocks as
    /// failures. `candidates` blocks are all-visible but not all-frozen; the first
    /// region ends at a place that `seed` decides.
    pub fn new(candidates: u32, failure_rate: f64, seed: impl FnOnce() -> u32) -> Rc<Self> {
        let successes = (MAX_EAGER_FREEZE_SUCCESS_RATE * f64::from(candidates)) as u32;
        if successes == 0 {
            return Self::off();
        }
        let first_region = seed() % EAGER_SCAN_REGION_SIZE;
        let max_failures = (failure_rate * f64::from(EAGER_SCAN_REGION_SIZE)) as u32;
        let share_of_first = 1.0 - first_region as f32 / EAGER_SCAN_REGION_SIZE as f32;
        Rc::new(EagerScan {
            next_region_start: Cell::new(Some(first_region.into())),
            max_failures: Cell::new(max_failures),
            remaining_failures: Cell::new((max_failures as f32 * share_of_first) as u32),
            success_limit: successes,
            remaining_successes: Cell::new(successes),
            undecided: Cell::new(0),
        })
    }

    /// A block chosen by it was frozen. True if that was the last success allowed,
    /// so that eager scanning ends now.
    pub fn succeeded(&self) -> bool {
        self.decided();
        self.remaining_successes.set(self.remaining_successes.get().saturating_sub(1));
        if self.remaining_successes.get() > 0 {
            return false;
        }
        // Blocks chosen ahead may still succeed after the end.
        let ends_now = self.max_failures.get() > 0;
        self.remaining_failures.set(0);
        self.max_failures.set(0);
        self.next_region_start.set(None);
        ends_now
    }

    /// A block chosen by it was too young to be frozen.
    pub fn failed(&self) {
        self.decided();
        self.remaining_failures.set(self.remaining_failures.get().saturating_sub(1));
    }

    /// A block chosen by it was in use by others, which counts neither way.
    pub fn passed_over(&self) {
        self.decided();
    }

    /// How many blocks may be frozen.
    pub fn success_limit(&self) -> u32 {
        self.success_limit
    }

    fn decided(&self) {
        self.undecided.set(self.undecided.get().saturating_sub(1));
    }

    fn chosen(&self) {
        self.undecided.set(self.undecided.get() + 1);
    }

    /// Whether the blocks chosen up to now leave both caps unreached whatever
    /// becomes of them.
    fn caps_are_out_of_reach(&self) -> bool {
        let remaining = self.remaining_failures.get().min(self.remaining_successes.get());
        remaining == 0 || self.undecided.get() < remaining
    }

    /// Forgives failures where a region begins with `block` or before it.
    fn enter(&self, block: u32) {
        if let Some(start) = self.next_region_start.get().filter(|start| u64::from(block) >= *start) {
            self.remaining_failures.set(self.max_failures.get());
            self.next_region_start.set(Some(start + u64::from(EAGER_SCAN_REGION_SIZE)));
        }
    }

    fn wants_more(&self) -> bool {
        self.remaining_failures.get() > 0
    }
}

/// A block for a VACUUM to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VacuumBlock {
    /// Its number.
    pub number: u32,
    /// The map said, when it was chosen, that it is all-visible.
    pub all_visible: bool,
    /// It was chosen to be frozen early.
    pub eager: bool,
}

/// What a VACUUM may skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipping {
    /// Nothing: DISABLE_PAGE_SKIPPING.
    Nothing,
    /// What is all-frozen, as an aggressive vacuum.
    AllFrozen,
    /// What is all-visible, as a normal vacuum.
    AllVisible,
}

/// Iterates over the blocks that a VACUUM reads, in rising order.
pub struct VacuumBlocks<M> {
    map: M,
    /// The word of the map looked at last, and which it is.
    word: Option<(u32, u64)>,
    rel_pages: u32,
    skipping: Skipping,
    threshold: Threshold,
    eager: Rc<EagerScan>,
    next_block: u32,
    /// The block at which the range at hand ends, which is read in any case.
    unskippable: Option<VacuumBlock>,
    skipped_all_visible: bool,
    below_threshold: u64,
}

impl<M: VisibilityMap> VacuumBlocks<M> {
    /// The blocks of a relation of `rel_pages` blocks.
    pub fn new(
        map: M,
        rel_pages: u32,
        skipping: Skipping,
        threshold: Threshold,
        eager: Rc<EagerScan>,
    ) -> Self {
        VacuumBlocks {
            map,
            word: None,
            rel_pages,
            skipping,
            threshold,
            eager,
            next_block: 0,
            unskippable: None,
            skipped_all_visible: false,
            below_threshold: 0,
        }
    }

    /// Whether a block was left out that is all-visible but not all-frozen: the
    /// vacuum cannot advance relfrozenxid then.
    pub fn skipped_all_visible(&self) -> bool {
        self.skipped_all_visible
    }

    /// Blocks handed out only because their range was below the threshold.
    pub fn below_threshold(&self) -> u64 {
        self.below_threshold
    }

    /// Whether the next block can be chosen before it is known what became of
    /// those chosen already.
    pub fn may_run_ahead(&self) -> bool {
        self.eager.caps_are_out_of_reach()
    }

    /// Whether `block` is all-visible and whether it is all-frozen. The map is
    /// asked once for each word, as late as possible.
    fn status(&mut self, block: u32) -> (bool, bool) {
        let index = block / PAGES_PER_WORD;
        let word = match self.word {
            Some((known, word)) if known == index => word,
            _ => self.map.word(index),
        };
        self.word = Some((index, word));
        let bits = word >> (2 * (block % PAGES_PER_WORD));
        (bits & 1 != 0, bits & 3 == 3)
    }

    /// The next block from `from` on that cannot be skipped, and whether a block
    /// before it is all-visible without being all-frozen.
    fn find_next_unskippable(&mut self, from: u32) -> (VacuumBlock, bool) {
        let mut any_only_all_visible = false;
        let mut number = from;
        loop {
            let (all_visible, all_frozen) = self.status(number);
            self.eager.enter(number);
            let found = VacuumBlock { number, all_visible, eager: false };
            if !all_visible || number == self.rel_pages - 1 || self.skipping == Skipping::Nothing {
                return (found, any_only_all_visible);
            }
            if !all_frozen {
                if self.skipping == Skipping::AllFrozen {
                    return (found, any_only_all_visible);
                }
                if self.eager.wants_more() {
                    return (VacuumBlock { eager: true, ..found }, any_only_all_visible);
                }
                any_only_all_visible = true;
            }
            number += 1;
        }
    }

    /// Judges the range that begins with the next block.
    fn advance(&mut self) -> VacuumBlock {
        let (unskippable, any_only_all_visible) = self.find_next_unskippable(self.next_block);
        let pages = unskippable.number - self.next_block;
        if pages > 0 && self.threshold.skips(pages) {
            self.skipped_all_visible |= any_only_all_visible;
            self.next_block = unskippable.number;
        }
        unskippable
    }
}

impl<M: VisibilityMap> Iterator for VacuumBlocks<M> {
    type Item = VacuumBlock;

    fn next(&mut self) -> Option<VacuumBlock> {
        if self.next_block >= self.rel_pages {
            return None;
        }
        let unskippable = match self.unskippable {
            Some(unskippable) => unskippable,
            None => self.advance(),
        };
        let number = self.next_block;
        self.next_block += 1;
        if number < unskippable.number {
            self.unskippable = Some(unskippable);
            self.below_threshold += 1;
            return Some(VacuumBlock { number, all_visible: true, eager: false });
        }
        self.unskippable = None;
        if unskippable.eager {
            self.eager.chosen();
        }
        Some(unskippable)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::oracle::{Bits, maps, thresholds};
    use super::super::{BlocksToScan, Threshold};
    use super::*;

    fn blocks(bits: &Bits, skipping: Skipping, threshold: u32, eager: &Rc<EagerScan>) -> VacuumBlocks<Bits> {
        let threshold = Threshold::new(threshold);
        VacuumBlocks::new(bits.clone(), bits.pages(), skipping, threshold, eager.clone())
    }

    /// Maps of three regions and a bit, in which one block in five was modified at
    /// most, and anything from none to all of the rest is all-frozen.
    fn large_maps() -> impl Strategy<Value = Bits> {
        let pages = 3 * EAGER_SCAN_REGION_SIZE + 100;
        (0u32..60, 0u32..=100, any::<u32>()).prop_map(move |(modified, frozen, seed)| {
            let random = |block: u32, salt: u32| {
                let mixed = (block ^ seed).wrapping_mul(0x9E37_79B9) ^ salt;
                (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA6B) >> 8
            };
            let bits = |block| {
                let all_visible = random(block, 1) % 300 >= modified;
                (all_visible, all_visible && random(block, 2) % 100 < frozen)
            };
            Bits((0..pages).map(bits).collect())
        })
    }

    fn candidates(bits: &Bits) -> u32 {
        bits.0.iter().filter(|bits| bits.0 && !bits.1).count() as u32
    }

    /// In the first region, which ends at a block, and in each one after it.
    fn allowed_failures(rate: f64, first_end: u32) -> (u32, u32) {
        let per_region = (rate * f64::from(EAGER_SCAN_REGION_SIZE)) as u32;
        let share = 1.0 - first_end as f32 / EAGER_SCAN_REGION_SIZE as f32;
        ((per_region as f32 * share) as u32, per_region)
    }

    proptest! {
        #[test]
        fn without_eager_scanning_it_is_the_scans_rule(
            bits in maps(), aggressive: bool, threshold in thresholds()
        ) {
            let skipping = if aggressive { Skipping::AllFrozen } else { Skipping::AllVisible };
            let mut vacuum = blocks(&bits, skipping, threshold, &EagerScan::off());
            let read = vacuum.by_ref().collect::<Vec<_>>();
            let mut scan = BlocksToScan::new(bits.ranges(aggressive), Threshold::new(threshold));
            let numbers = read.iter().map(|block| block.number).collect::<Vec<_>>();
            prop_assert_eq!(numbers, scan.by_ref().collect::<Vec<_>>());
            prop_assert_eq!(vacuum.skipped_all_visible(), scan.counts().skipped_all_visible);

            let skippable = |block: u32| {
                let (all_visible, all_frozen) = bits.0[block as usize];
                block != bits.pages() - 1 && all_visible && (all_frozen || !aggressive)
            };
            let below = read.iter().filter(|block| skippable(block.number)).count();
            prop_assert_eq!(vacuum.below_threshold(), below as u64);
            for block in read {
                prop_assert_eq!(block.all_visible, bits.0[block.number as usize].0);
                prop_assert!(!block.eager);
            }
        }

        #[test]
        fn with_page_skipping_disabled_every_block_is_read(bits in maps(), threshold in thresholds()) {
            let mut vacuum = blocks(&bits, Skipping::Nothing, threshold, &EagerScan::off());
            let expected = bits.0.iter().zip(0..);
            let expected = expected.map(|(bits, number)| VacuumBlock { number, all_visible: bits.0, eager: false });
            prop_assert_eq!(vacuum.by_ref().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            prop_assert_eq!(vacuum.below_threshold(), 0);
            prop_assert!(!vacuum.skipped_all_visible());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// With each block judged before the next is chosen, both caps are exact. The
        /// caps are counted here by looking at each candidate in turn.
        #[test]
        fn eager_scanning_keeps_to_its_caps(
            bits in large_maps(), rate in 0.001f64..1.0, seed: u32, one_in in prop_oneof![Just(1), 1u32..50]
        ) {
            let eager = EagerScan::new(candidates(&bits), rate, || seed);
            let freezable = |block: u32| block.is_multiple_of(one_in);
            let mut ended = 0;
            let mut chosen = Vec::new();
            for block in blocks(&bits, Skipping::AllVisible, 1, &eager) {
                if block.eager {
                    chosen.push(block.number);
                    if freezable(block.number) {
                        ended += u32::from(eager.succeeded());
                    } else {
                        eager.failed();
                    }
                }
            }

            let limit = candidates(&bits) / 5;
            let first_end = seed % EAGER_SCAN_REGION_SIZE;
            let (in_first, per_region) = allowed_failures(rate, first_end);
            let (mut successes, mut failures_left) = (0, in_first);
            let mut expected = Vec::new();
            for (block, bits_of_block) in (0..).zip(&bits.0) {
                if block >= first_end && (block - first_end).is_multiple_of(EAGER_SCAN_REGION_SIZE) {
                    failures_left = per_region;
                }
                let candidate = bits_of_block.0 && !bits_of_block.1 && block != bits.pages() - 1;
                if candidate && failures_left > 0 && successes < limit {
                    expected.push(block);
                    if freezable(block) { successes += 1 } else { failures_left -= 1 }
                }
            }
            prop_assert_eq!(chosen, expected);
            prop_assert_eq!(ended, u32::from(limit > 0 && successes == limit && per_region > 0));
        }

        /// Running ahead as far as allowed never goes over a cap.
        #[test]
        fn running_ahead_stops_before_the_caps(bits in large_maps(), rate in 0.001f64..0.2, seed: u32) {
            let eager = EagerScan::new(candidates(&bits), rate, || seed);
            let mut vacuum = blocks(&bits, Skipping::AllVisible, 1, &eager);
            let first_end = seed % EAGER_SCAN_REGION_SIZE;
            let (in_first, per_region) = allowed_failures(rate, first_end);
            let offset = EAGER_SCAN_REGION_SIZE - first_end;
            let mut in_region = std::collections::BTreeMap::<u32, u32>::new();
            loop {
                while !vacuum.may_run_ahead() {
                    eager.failed();
                }
                let Some(block) = vacuum.next() else { break };
                if block.eager {
                    *in_region.entry((block.number + offset) / EAGER_SCAN_REGION_SIZE).or_default() += 1;
                }
            }
            // Failures of one region may be known only in the next, which leaves fewer
            // for that, not more.
            for (region, failures) in in_region {
                let allowed = if region == 0 { in_first } else { per_region };
                prop_assert!(failures <= allowed, "{} of {} in region {}", failures, allowed, region);
            }
        }

        /// What is in use by others leaves both caps as they are.
        #[test]
        fn what_is_in_use_counts_neither_way(bits in large_maps(), rate in 0.01f64..0.2, seed: u32) {
            let eager = EagerScan::new(candidates(&bits), rate, || seed % 100);
            let mut vacuum = blocks(&bits, Skipping::AllVisible, 1, &eager);
            let mut chosen = 0;
            while let Some(block) = vacuum.next() {
                if block.eager {
                    chosen += 1;
                    eager.passed_over();
                }
                prop_assert!(vacuum.may_run_ahead());
            }
            let last = bits.0[bits.0.len() - 1];
            let all = candidates(&bits) - u32::from(last.0 && !last.1);
            prop_assert_eq!(chosen, if candidates(&bits) < 5 { 0 } else { all });
        }
    }
}

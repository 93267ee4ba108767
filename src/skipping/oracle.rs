//! The rule once more, page by page and as slow as its description, to test
//! the fast one against.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::picture::Shade;
use super::*;

/// A map in a vector, two flags a page.
#[derive(Clone, Debug)]
pub(super) struct Bits(pub(super) Vec<(bool, bool)>);

impl VisibilityMap for Bits {
    fn word(&mut self, index: u32) -> u64 {
        let first = (index * PAGES_PER_WORD) as usize;
        let pages = self.0.iter().skip(first).take(PAGES_PER_WORD as usize);
        pages.enumerate().fold(0, |word, (offset, &(all_visible, all_frozen))| {
            word | (u64::from(all_visible) | u64::from(all_frozen) << 1) << (2 * offset)
        })
    }
}

impl Bits {
    pub(super) fn pages(&self) -> u32 {
        self.0.len() as u32
    }

    pub(super) fn ranges(&self, aggressive: bool) -> Ranges<Bits> {
        Ranges::new(self.clone(), self.pages(), aggressive)
    }
}

/// What becomes of each page, in the words of `vacuum_skip_ranges`.
fn naive(bits: &Bits, aggressive: bool, threshold: u32) -> Vec<(Action, Reason)> {
    let pages = &bits.0;
    let bits_allow = |page: usize| pages[page].0 && (pages[page].1 || !aggressive);
    let skippable = |page: usize| bits_allow(page) && page != pages.len() - 1;
    let fate = |page: usize| {
        if !pages[page].0 {
            return (Action::Scan, Reason::NotAllVisible);
        }
        if !bits_allow(page) {
            return (Action::Scan, Reason::AllVisible);
        }
        if !skippable(page) {
            return (Action::Scan, Reason::LastBlock);
        }
        let first = (0..=page).rev().take_while(|&other| skippable(other)).last().unwrap();
        let range = (first..pages.len()).take_while(|&other| skippable(other)).collect::<Vec<_>>();
        if range.len() < threshold as usize {
            (Action::Scan, Reason::BelowThreshold)
        } else if range.iter().any(|&other| !pages[other].1) {
            (Action::Skip, Reason::AllVisible)
        } else {
            (Action::Skip, Reason::AllFrozen)
        }
    };
    (0..pages.len()).map(fate).collect()
}

/// A plan counted page by page.
fn naive_plan(bits: &Bits, aggressive: bool, threshold: u32) -> Plan {
    let fates = naive(bits, aggressive, threshold);
    let skipped = |page: usize| fates[page].0 == Action::Skip;
    let count = |test: &dyn Fn(usize) -> bool| (0..fates.len()).filter(|&page| test(page)).count() as u64;
    let starts = |page: usize, test: &dyn Fn(usize) -> bool| test(page) && (page == 0 || !test(page - 1));
    let for_nothing = |page: usize| matches!(fates[page].1, Reason::BelowThreshold | Reason::LastBlock);
    Plan {
        threshold: Threshold::new(threshold),
        scanned_pages: count(&|page| !skipped(page)),
        skipped_pages: count(&skipped),
        skipped_ranges: count(&|page| starts(page, &skipped)),
        skippable_pages_scanned: count(&for_nothing),
        read_runs: count(&|page| starts(page, &|page| !skipped(page))),
        skipped_all_visible: count(&|page| skipped(page) && !bits.0[page].1) > 0,
    }
}

/// Maps of up to 400 pages in runs of one kind each, so that ranges of every
/// length, and borders of words at every place, do occur.
pub(super) fn maps() -> impl Strategy<Value = Bits> {
    let kinds =
        prop_oneof![Just((false, false)), Just((true, false)), Just((true, true)), Just((false, true))];
    let runs = prop::collection::vec((kinds, 1usize..70), 0..12);
    runs.prop_map(|runs| {
        let pages = runs.into_iter().flat_map(|(kind, pages)| std::iter::repeat_n(kind, pages));
        Bits(pages.take(400).collect())
    })
}

pub(super) fn thresholds() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..80, Just(400), Just(u32::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn ranges_tile_the_relation(bits in maps(), aggressive: bool) {
        let mut next = 0;
        let mut previous = None;
        for range in bits.ranges(aggressive) {
            prop_assert_eq!(range.first_block, next);
            prop_assert!(range.pages > 0);
            prop_assert!(previous != Some(std::mem::discriminant(&range.kind)), "two ranges of a kind adjoin");
            previous = Some(std::mem::discriminant(&range.kind));
            next = range.last_block() + 1;
        }
        prop_assert_eq!(next, bits.pages());
    }

    #[test]
    fn decisions_are_the_rules(bits in maps(), aggressive: bool, threshold in thresholds()) {
        let mut fates = Vec::new();
        for range in bits.ranges(aggressive) {
            let fate = range.decide(Threshold::new(threshold));
            prop_assert_eq!(fate.0 == Action::Skip, range.is_skipped(Threshold::new(threshold)));
            fates.extend(std::iter::repeat_n(fate, range.pages as usize));
        }
        prop_assert_eq!(fates, naive(&bits, aggressive, threshold));
    }

    #[test]
    fn a_scan_reads_what_the_rule_says(bits in maps(), aggressive: bool, threshold in thresholds()) {
        let mut blocks = BlocksToScan::new(bits.ranges(aggressive), Threshold::new(threshold));
        let scanned = blocks.by_ref().collect::<Vec<_>>();
        let fates = naive(&bits, aggressive, threshold);
        let expected = (0..bits.pages()).filter(|&block| fates[block as usize].0 == Action::Scan);
        prop_assert_eq!(&scanned, &expected.collect::<Vec<_>>());

        let (counts, plan) = (blocks.counts(), naive_plan(&bits, aggressive, threshold));
        prop_assert_eq!(counts.scanned_pages, plan.scanned_pages);
        prop_assert_eq!(counts.skipped_pages, plan.skipped_pages);
        prop_assert_eq!(counts.skipped_ranges, plan.skipped_ranges);
        prop_assert_eq!(counts.skippable_pages_scanned, plan.skippable_pages_scanned);
        prop_assert_eq!(counts.skipped_all_visible, plan.skipped_all_visible);
    }

    #[test]
    fn a_sweep_equals_single_runs(
        bits in maps(), aggressive: bool, asked in prop::collection::vec(thresholds(), 1..12)
    ) {
        let limits = asked.iter().map(|&threshold| Threshold::new(threshold)).collect::<Vec<_>>();
        let together = sweep(bits.ranges(aggressive), &limits);
        for (&threshold, plan) in asked.iter().zip(&together) {
            prop_assert_eq!(*plan, naive_plan(&bits, aggressive, threshold));
            let alone = sweep(bits.ranges(aggressive), &[Threshold::new(threshold)]);
            prop_assert_eq!(alone, vec![*plan]);
        }
        prop_assert_eq!(together.len(), asked.len());
    }

    #[test]
    fn gaps_count_every_skippable_range(bits in maps(), aggressive: bool) {
        let fates = naive(&bits, aggressive, 1);
        let mut lengths = BTreeMap::new();
        for run in fates.chunk_by(|left, right| left.0 == right.0).filter(|run| run[0].0 == Action::Skip) {
            *lengths.entry(run.len() as u64).or_insert(0u64) += 1;
        }
        let histogram = gaps(bits.ranges(aggressive));
        for gap in &histogram {
            let within = lengths.range(gap.from_pages..=gap.to_pages);
            prop_assert_eq!(gap.ranges, within.clone().map(|(_, ranges)| ranges).sum::<u64>());
            prop_assert_eq!(gap.pages, within.map(|(pages, ranges)| pages * ranges).sum::<u64>());
        }
        let counted = histogram.iter().map(|gap| gap.ranges).sum::<u64>();
        prop_assert_eq!(counted, lengths.values().sum::<u64>());
        prop_assert!(histogram.last().is_none_or(|gap| gap.ranges > 0));
        prop_assert!(histogram.iter().enumerate().all(|(power, gap)| gap.from_pages == 1 << power));
    }

    #[test]
    fn a_picture_counts_each_block_in_its_cell(
        bits in maps(), aggressive: bool, threshold in thresholds(), cells in 1u32..500
    ) {
        let picture = Picture::paint(bits.ranges(aggressive), Threshold::new(threshold), cells);
        let fates = naive(&bits, aggressive, threshold);
        prop_assert_eq!(picture.cells() as u32, cells.min(bits.pages()));
        let mut next = 0;
        for cell in 0..picture.cells() {
            prop_assert_eq!(picture.first_block(cell), next);
            next = picture.first_block(cell + 1);
            let fates = &fates[picture.first_block(cell) as usize..next as usize];
            prop_assert!(!fates.is_empty());
            let scanned = fates.iter().filter(|fate| fate.0 == Action::Scan).count();
            prop_assert_eq!(picture.scanned_pages(cell), scanned as u64);
            let share = 100 * scanned / fates.len();
            let shade = picture.shade(cell);
            prop_assert_eq!(shade == Shade::Nothing, scanned == 0);
            prop_assert_eq!(shade == Shade::All, scanned == fates.len());
            prop_assert_eq!(shade <= Shade::Tenth, share < 10 || scanned * 10 == fates.len());
        }
        prop_assert_eq!(next, u64::from(bits.pages()));
    }
}

/// A map that needs no memory: every page all-frozen but each `every`th, which
/// is not all-visible, and all-visible ones in its second half.
struct Synthetic {
    every: u64,
    pages: u64,
}

impl VisibilityMap for Synthetic {
    fn word(&mut self, index: u32) -> u64 {
        let first = u64::from(index) * u64::from(PAGES_PER_WORD);
        let all = if first < self.pages / 2 { u64::MAX } else { 0x5555_5555_5555_5555 };
        let next = first.next_multiple_of(self.every);
        if next < first + u64::from(PAGES_PER_WORD) { all & !(3 << (2 * (next - first))) } else { all }
    }
}

#[test]
fn the_largest_relation_is_planned_without_memory_for_each_block() {
    const PAGES: u32 = u32::MAX - 1;
    const EVERY: u64 = 1 << 20;
    let map = || Synthetic { every: EVERY, pages: u64::from(PAGES) };
    let limits = [0, 32, EVERY as u32 - 1, EVERY as u32, u32::MAX].map(Threshold::new);
    let plans = sweep(Ranges::new(map(), PAGES, false), &limits);

    // Modified are the blocks 0, 2^20, …, 4095 * 2^20. The last range of
    // skippable blocks is cut short by the last block.
    let modified = 1 << 12;
    let skippable = u64::from(PAGES) - modified;
    for plan in &plans[..2] {
        assert_eq!(plan.scanned_pages, modified + 1);
        assert_eq!(plan.skipped_ranges, modified);
        assert_eq!(plan.read_runs, modified + 1);
        assert_eq!(plan.skippable_pages_scanned, 1);
        assert!(plan.skipped_all_visible);
    }
    assert_eq!(plans[2].skipped_ranges, modified - 1);
    assert_eq!(plans[2].skipped_pages, (modified - 1) * (EVERY - 1));
    for plan in &plans[3..] {
        assert_eq!(plan.scanned_pages, u64::from(PAGES));
        assert_eq!(plan.skippable_pages_scanned, skippable);
        assert_eq!((plan.skipped_ranges, plan.read_runs), (0, 1));
        assert!(!plan.skipped_all_visible);
    }
    // An aggressive vacuum skips in the first half only.
    let aggressive = sweep(Ranges::new(map(), PAGES, true), &limits[..1]);
    assert_eq!(aggressive[0].skipped_ranges, modified / 2);
    assert!(!aggressive[0].skipped_all_visible);
}

#[test]
fn the_largest_relation_is_scanned_to_its_last_block() {
    const PAGES: u32 = u32::MAX;
    let map = Synthetic { every: 1 << 31, pages: u64::from(PAGES) };
    let mut blocks = BlocksToScan::new(Ranges::new(map, PAGES, false), Threshold::new(32));
    assert_eq!(blocks.by_ref().collect::<Vec<_>>(), [0, 1 << 31, PAGES - 1]);
    assert_eq!(blocks.counts().skipped_pages, u64::from(PAGES) - 3);
}

#[test]
fn an_empty_relation_has_no_ranges() {
    let empty = Bits(Vec::new());
    assert_eq!(empty.ranges(false).next(), None);
    assert_eq!(sweep(empty.ranges(false), &[Threshold::new(1)])[0], naive_plan(&empty, false, 1));
    assert_eq!(Picture::paint(empty.ranges(false), Threshold::new(1), 10).cells(), 0);
}

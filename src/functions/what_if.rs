//! What a vacuum would read, from the visibility map alone: `vacuum_skip_plan`,
//! `vacuum_skip_ranges`, `vacuum_skip_map` and `vacuum_skip_gaps`.

use pgrx::prelude::*;

use super::arguments;
use crate::scan::ranges;
use crate::server::cutoffs::Cutoffs;
use crate::server::error::OrRaise;
use crate::server::regclass::Regclass;
use crate::server::relation::HeapRelation;
use crate::server::visibility_map::PinnedMap;
use crate::skipping::{self, Action, Picture, Plan, Range, Ranges, Reason, Shade, Threshold};

/// `part` of `whole` in per cent; 0 where there is nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn vacuum_skip_plan(
    rel: Regclass,
    thresholds: default!(Vec<Option<i32>>, "'{1,2,4,8,16,32,64,128}'"),
) -> TableIterator<
    'static,
    (
        name!(threshold, i32),
        name!(rel_pages, i64),
        name!(scanned_pages, i64),
        name!(scanned_percent, f64),
        name!(skipped_pages, i64),
        name!(skipped_ranges, i64),
        name!(skippable_pages_scanned, i64),
        name!(read_runs, i64),
        name!(skipped_all_visible, bool),
    ),
> {
    let thresholds = arguments::thresholds(&thresholds).or_raise();
    let relation = HeapRelation::open(rel.0, "vacuum_skip_plan($)").or_raise();
    let plans = skipping::sweep(ranges(&relation), &thresholds);
    TableIterator::new(plans.into_iter().map(|plan: Plan| {
        let rel_pages = plan.scanned_pages + plan.skipped_pages;
        (
            plan.threshold.blocks() as i32,
            rel_pages as i64,
            plan.scanned_pages as i64,
            percent(plan.scanned_pages, rel_pages),
            plan.skipped_pages as i64,
            plan.skipped_ranges as i64,
            plan.skippable_pages_scanned as i64,
            plan.read_runs as i64,
            plan.skipped_all_visible,
        )
    }))
}

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn vacuum_skip_ranges(
    rel: Option<Regclass>,
    threshold: default!(Option<i32>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(first_block, i64),
        name!(last_block, i64),
        name!(pages, i64),
        name!(action, String),
        name!(reason, String),
    ),
> {
    let Some(rel) = rel else {
        return TableIterator::empty();
    };
    let threshold = arguments::threshold(threshold).or_raise();
    TableIterator::new(RangeRows::new(rel).map(move |range| {
        let (action, reason) = range.decide(threshold);
        (
            range.first_block.into(),
            range.last_block().into(),
            range.pages.into(),
            action_name(action).to_string(),
            reason_name(reason).to_string(),
        )
    }))
}

/// The ranges of a relation, a batch at a time: there may be too many to keep.
///
/// Between two batches nothing is pinned, open or locked, so that a cursor may
/// stop at any row.
struct RangeRows {
    rel: Regclass,
    /// Known from the first batch on.
    limits: Option<Limits>,
    next_block: u32,
    batch: std::vec::IntoIter<Range>,
}

/// What a vacuum that began with the first batch would go by.
#[derive(Clone, Copy)]
struct Limits {
    rel_pages: u32,
    aggressive: bool,
}

impl RangeRows {
    const BATCH: usize = 1000;

    fn new(rel: Regclass) -> Self {
        RangeRows { rel, limits: None, next_block: 0, batch: Vec::new().into_iter() }
    }

    fn next_batch(&mut self) -> Vec<Range> {
        let relation = HeapRelation::open(self.rel.0, "vacuum_skip_ranges($)").or_raise();
        let limits = self.limits.get_or_insert_with(|| {
            let aggressive = Cutoffs::of(&relation).aggressive;
            Limits { rel_pages: relation.pages(), aggressive }
        });
        // It may have been truncated since the batch before.
        limits.rel_pages = limits.rel_pages.min(relation.pages());
        let map = PinnedMap::new(&relation);
        let ranges = Ranges::starting_at(map, limits.rel_pages, limits.aggressive, self.next_block);
        ranges.take(Self::BATCH).collect()
    }
}

impl Iterator for RangeRows {
    type Item = Range;

    fn next(&mut self) -> Option<Range> {
        let at_end = self.limits.is_some_and(|limits| self.next_block >= limits.rel_pages);
        if self.batch.len() == 0 && !at_end {
            self.batch = self.next_batch().into_iter();
        }
        let range = self.batch.next()?;
        self.next_block = range.first_block + range.pages;
        Some(range)
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Scan => "scan",
        Action::Skip => "skip",
    }
}

fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::NotAllVisible => "not all-visible",
        Reason::AllVisible => "all-visible",
        Reason::AllFrozen => "all-frozen",
        Reason::BelowThreshold => "below threshold",
        Reason::LastBlock => "last block",
    }
}

#[pg_extern(volatile, parallel_restricted)]
fn vacuum_skip_map(
    rel: Option<Regclass>,
    threshold: default!(Option<i32>, "NULL"),
    width: default!(Option<i32>, "64"),
    height: default!(Option<i32>, "16"),
) -> SetOfIterator<'static, String> {
    let Some(rel) = rel else {
        return SetOfIterator::empty();
    };
    let threshold = arguments::threshold(threshold).or_raise();
    let width = arguments::cells("width", width, 64).or_raise();
    let height = arguments::cells("height", height, 16).or_raise();
    let relation = HeapRelation::open(rel.0, "vacuum_skip_map($)").or_raise();
    let picture = Picture::paint(ranges(&relation), threshold, width * height);
    SetOfIterator::new(draw(&relation.name(), threshold, &picture, width as usize))
}

/// The lines of a picture: what it shows, its rows, each with the number of
/// its first block, and what the characters mean.
fn draw(name: &str, threshold: Threshold, picture: &Picture, width: usize) -> Vec<String> {
    let cells = picture.cells();
    let pages = u64::from(picture.rel_pages());
    let scanned: u64 = (0..cells).map(|cell| picture.scanned_pages(cell)).sum();
    let mut lines = vec![format!(
        "{name}: threshold {} reads {scanned} of {pages} pages ({:.1} %)",
        threshold.blocks(),
        percent(scanned, pages)
    )];
    let digits = pages.to_string().len();
    for first in (0..cells).step_by(width) {
        let row: String =
            (first..cells.min(first + width)).map(|cell| character(picture.shade(cell))).collect();
        lines.push(format!("{:>digits$} |{row:<width$}|", picture.first_block(first)));
    }
    if cells > 0 {
        let share = pages as f64 / cells as f64;
        lines.push(format!("A character is {share:.1} pages; the number is a row's first block."));
        lines.push("Read: ' ' none  '.' up to 10 %  ':' 25 %  '+' 50 %  '*' more  '#' all".into());
    }
    lines
}

fn character(shade: Shade) -> char {
    match shade {
        Shade::Nothing => ' ',
        Shade::Tenth => '.',
        Shade::Quarter => ':',
        Shade::Half => '+',
        Shade::Most => '*',
        Shade::All => '#',
    }
}

#[pg_extern(volatile, parallel_restricted)]
fn vacuum_skip_gaps(
    rel: Regclass,
) -> TableIterator<
    'static,
    (name!(from_pages, i64), name!(to_pages, i64), name!(ranges, i64), name!(pages, i64)),
> {
    let relation = HeapRelation::open(rel.0, "vacuum_skip_gaps($)").or_raise();
    let gaps = skipping::gaps(ranges(&relation));
    TableIterator::new(
        gaps.into_iter()
            .map(|gap| (gap.from_pages as i64, gap.to_pages as i64, gap.ranges as i64, gap.pages as i64)),
    )
}

//! What a vacuum would read, from the visibility map alone: `vacuum_skip_plan`,
//! `vacuum_skip_ranges`, `vacuum_skip_map` and `vacuum_skip_gaps`.

use pgrx::prelude::*;

use super::arguments;
use crate::scan::{RangeBatches, ranges};
use crate::server::error::OrRaise;
use crate::server::regclass::Regclass;
use crate::skipping::{self, Action, Picture, Plan, Reason};

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
    let relation = arguments::relation(rel, "vacuum_skip_plan").or_raise();
    let plans = skipping::sweep(ranges(&relation), &thresholds);
    TableIterator::new(plans.into_iter().map(|plan: Plan| {
        (
            plan.threshold.blocks() as i32,
            plan.rel_pages() as i64,
            plan.scanned_pages as i64,
            plan.scanned_percent(),
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
    let open = move || arguments::relation(rel, "vacuum_skip_ranges").or_raise();
    let threshold = arguments::threshold_for(&open(), threshold);
    let ranges = RangeBatches::new(open);
    TableIterator::new(ranges.map(move |range| {
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
    let relation = arguments::relation(rel, "vacuum_skip_map").or_raise();
    let threshold = arguments::threshold_for(&relation, threshold);
    let picture = Picture::paint(ranges(&relation), threshold, width * height);
    SetOfIterator::new(picture.draw(&relation.name(), width as usize))
}

#[pg_extern(volatile, parallel_restricted)]
fn vacuum_skip_gaps(
    rel: Regclass,
) -> TableIterator<
    'static,
    (name!(from_pages, i64), name!(to_pages, i64), name!(ranges, i64), name!(pages, i64)),
> {
    let relation = arguments::relation(rel, "vacuum_skip_gaps").or_raise();
    let gaps = skipping::gaps(ranges(&relation));
    TableIterator::new(
        gaps.into_iter()
            .map(|gap| (gap.from_pages as i64, gap.to_pages as i64, gap.ranges as i64, gap.pages as i64)),
    )
}

//! `vacuum_skip_scan`: the lazy heap scan, measured.

use pgrx::prelude::*;

use super::arguments;
use crate::reading::ReadOptions;
use crate::scan::{ScanOptions, ScanResult, scan};
use crate::server::error::OrRaise;
use crate::server::regclass::Regclass;
use crate::settings;

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn vacuum_skip_scan(
    rel: Option<Regclass>,
    threshold: default!(Option<i32>, "NULL"),
    read_mode: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(threshold, i32),
        name!(read_mode, String),
        name!(aggressive, bool),
        name!(rel_pages, i64),
        name!(scanned_pages, i64),
        name!(skipped_pages, i64),
        name!(skipped_ranges, i64),
        name!(skippable_pages_scanned, i64),
        name!(skipped_all_visible, bool),
        name!(new_pages, i64),
        name!(empty_pages, i64),
        name!(live_tuples, i64),
        name!(recently_dead_tuples, i64),
        name!(dead_tuples, i64),
        name!(dead_items, i64),
        name!(dead_bytes, i64),
        name!(free_bytes, i64),
        name!(blocks_hit, i64),
        name!(blocks_read, i64),
        name!(read_time_ms, Option<f64>),
        name!(elapsed_ms, f64),
    ),
> {
    let Some(rel) = rel else {
        return TableIterator::empty();
    };
    let threshold = arguments::threshold(threshold).or_raise();
    let mode = arguments::read_mode(read_mode).or_raise();
    let relation = arguments::relation(rel, "vacuum_skip_scan").or_raise();
    let threshold = arguments::threshold_for(&relation, threshold);
    let reading = ReadOptions { mode, ahead: settings::read_ahead() };
    let options = ScanOptions { threshold, reading };
    let ScanResult { aggressive, rel_pages, skips, pages, buffers, elapsed_ms } =
        scan(&relation, options).or_raise();
    TableIterator::once((
        options.threshold.blocks() as i32,
        options.reading.mode.name().to_string(),
        aggressive,
        rel_pages.into(),
        skips.scanned_pages as i64,
        skips.skipped_pages as i64,
        skips.skipped_ranges as i64,
        skips.skippable_pages_scanned as i64,
        skips.skipped_all_visible,
        pages.new_pages as i64,
        pages.empty_pages as i64,
        pages.live_tuples as i64,
        pages.recently_dead_tuples as i64,
        pages.dead_tuples as i64,
        pages.dead_items as i64,
        pages.dead_bytes as i64,
        pages.free_bytes as i64,
        buffers.hit as i64,
        buffers.read as i64,
        buffers.read_time_ms,
        elapsed_ms,
    ))
}

//! What VERBOSE and log_autovacuum_min_duration say of a vacuum: the lines of
//! vacuumlazy.c, and one more on the threshold.

use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::engine::Vacuum;
use crate::server::error::{UserError, report};
use crate::server::relation::{HeapRelation, database_name};
use crate::server::vacuum::freezing::Horizons;
use crate::server::vacuum::request::failsafe_is_active;
use crate::server::vacuum::statistics::Advanced;
use crate::server::vacuum::usage::{Usage, UsageMeter};

/// How messages call the relation: without quotes, as the server does. Copied at the
/// beginning, since looking names up is not always possible later.
pub(super) struct Names {
    database: String,
    schema: String,
    pub(super) table: String,
}

impl Names {
    pub(super) fn of(relation: &HeapRelation) -> Self {
        Names { database: database_name(), schema: relation.schema(), table: relation.name() }
    }

    /// Database, schema and table.
    pub(super) fn full(&self) -> String {
        format!("{}.{}.{}", self.database, self.schema, self.table)
    }

    pub(super) fn warn_not_parallel(&self) {
        let message = format!(
            "disabling parallel option of vacuum on \"{}\" --- cannot vacuum temporary tables in parallel",
            self.table
        );
        UserError::new(PgSqlErrorCode::ERRCODE_WARNING, message).warn();
    }
}

/// A vacuum whose work on the files is done.
pub(super) struct Report<'a> {
    pub(super) vacuum: Vacuum<'a>,
    /// What relfrozenxid and relminmxid can become.
    pub(super) horizons: Horizons,
}

impl Report<'_> {
    /// Tells who wants to know.
    pub(super) fn tell(&self, advanced: Advanced, meter: &UsageMeter) {
        let request = self.vacuum.request;
        let logged = request.log_min_duration().is_some_and(|least| meter.took_at_least(least));
        if request.verbose() {
            report(PgLogLevel::INFO, self.text(advanced, &meter.usage()));
        } else if logged {
            report(PgLogLevel::LOG, self.text(advanced, &meter.usage()));
        }
    }

    fn text(&self, advanced: Advanced, usage: &Usage) -> String {
        let mut lines = vec![self.title(), self.pages(), self.threshold()];
        lines.extend(self.tuples());
        lines.extend(self.horizons(advanced));
        lines.extend(self.freezing());
        lines.push(self.dead_items());
        lines.extend(self.indexes());
        lines.extend(resources(usage));
        lines.join("\n")
    }

    fn title(&self) -> String {
        let vacuum = &self.vacuum;
        let aggressive = if vacuum.aggressive() { "aggressive " } else { "" };
        let what = if vacuum.request.verbose() {
            // Whether it is aggressive was said at the beginning.
            "finished vacuuming".into()
        } else if vacuum.request.is_wraparound() {
            format!("automatic {aggressive}vacuum to prevent wraparound of table")
        } else {
            format!("automatic {aggressive}vacuum of table")
        };
        format!("{what} \"{}\": index scans: {}", vacuum.names.full(), vacuum.counts.index_scans)
    }

    /// In per cent of the blocks that there were.
    fn percent(&self, pages: u64) -> f64 {
        match self.vacuum.freezing.rel_pages() {
            0 => 100.0,
            rel_pages => 100.0 * pages as f64 / f64::from(rel_pages),
        }
    }

    fn pages(&self) -> String {
        let Vacuum { counts, rel_pages, .. } = &self.vacuum;
        format!(
            "pages: {} removed, {rel_pages} remain, {} scanned ({:.2}% of total), {} eagerly scanned",
            counts.removed,
            counts.scanned,
            self.percent(counts.scanned.into()),
            counts.eagerly_scanned
        )
    }

    fn threshold(&self) -> String {
        let Vacuum { counts, threshold, .. } = &self.vacuum;
        format!(
            "skip pages threshold: {} ({}), {} pages ({:.2}% of total) scanned only because of it",
            threshold.threshold,
            threshold.source.name(),
            counts.below_threshold,
            self.percent(counts.below_threshold)
        )
    }

    fn tuples(&self) -> Vec<String> {
        let counts = &self.vacuum.counts;
        let mut lines = vec![format!(
            "tuples: {} removed, {} remain, {} are dead but not yet removable",
            counts.removed_tuples, counts.new_tuples as i64, counts.recently_dead_tuples
        )];
        if counts.missed_dead_tuples > 0 {
            lines.push(format!(
                "tuples missed: {} dead from {} pages not removed due to cleanup lock contention",
                counts.missed_dead_tuples, counts.missed
            ));
        }
        lines
    }

    fn horizons(&self, advanced: Advanced) -> Vec<String> {
        let freezing = &self.vacuum.freezing;
        let (old, new) = (freezing.old_horizons(), self.horizons);
        let mut lines = vec![format!(
            "removable cutoff: {}, which was {} XIDs old when operation ended",
            freezing.oldest_xmin(),
            freezing.age_of_oldest_xmin()
        )];
        let ahead = |new: u32, old: u32| new.wrapping_sub(old) as i32;
        if advanced.xid {
            lines.push(format!(
                "new relfrozenxid: {}, which is {} XIDs ahead of previous value",
                new.xid(),
                ahead(new.xid(), old.xid())
            ));
        }
        if advanced.mxid {
            lines.push(format!(
                "new relminmxid: {}, which is {} MXIDs ahead of previous value",
                new.mxid(),
                ahead(new.mxid(), old.mxid())
            ));
        }
        lines
    }

    fn freezing(&self) -> [String; 2] {
        let counts = &self.vacuum.counts;
        [
            format!(
                "frozen: {} pages from table ({:.2}% of total) had {} tuples frozen",
                counts.frozen,
                self.percent(counts.frozen.into()),
                counts.frozen_tuples
            ),
            format!(
                "visibility map: {} pages set all-visible, {} pages set all-frozen ({} were all-visible)",
                counts.newly_visible,
                counts.newly_visible_frozen + counts.newly_frozen,
                counts.newly_frozen
            ),
        ]
    }

    fn dead_items(&self) -> String {
        let Vacuum { counts, steps, .. } = &self.vacuum;
        let (scan, had, removed) = match (steps.index_vacuuming, counts.index_scans, failsafe_is_active()) {
            (true, 0, _) => ("not needed", "had", " removed"),
            (true, ..) => ("needed", "had", " removed"),
            (false, _, false) => ("bypassed", "have", ""),
            (false, _, true) => ("bypassed by failsafe", "have", ""),
        };
        format!(
            "index scan {scan}: {} pages from table ({:.2}% of total) {had} {} dead item identifiers{removed}",
            counts.with_dead_items,
            self.percent(counts.with_dead_items.into()),
            counts.dead_items
        )
    }

    fn indexes(&self) -> impl Iterator<Item = String> {
        let indexes = &self.vacuum.indexes;
        (0..indexes.len()).filter_map(|index| {
            let pages = indexes.pages(index)?;
            Some(format!(
                "index \"{}\": pages: {} in total, {} newly deleted, {} currently deleted, {} reusable",
                indexes.name(index),
                pages.total,
                pages.newly_deleted,
                pages.deleted,
                pages.free
            ))
        })
    }
}

fn resources(usage: &Usage) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(delay) = usage.delay {
        lines.push(format!("delay time: {delay:.3} ms"));
    }
    if let Some((read, write)) = usage.io_times {
        lines.push(format!("I/O timings: read: {read:.3} ms, write: {write:.3} ms"));
    }
    let rate = |blocks: i64| match usage.elapsed {
        0 => 0.0,
        elapsed => {
            let megabytes = f64::from(pgrx::pg_sys::BLCKSZ) * blocks as f64 / f64::from(1 << 20);
            megabytes / (elapsed as f64 / 1e6)
        }
    };
    lines.push(format!(
        "avg read rate: {:.3} MB/s, avg write rate: {:.3} MB/s",
        rate(usage.read),
        rate(usage.dirtied)
    ));
    lines.push(format!("buffer usage: {} hits, {} reads, {} dirtied", usage.hit, usage.read, usage.dirtied));
    lines.push(format!(
        "WAL usage: {} records, {} full page images, {} bytes, {} buffers full",
        usage.wal_records, usage.wal_full_page_images, usage.wal_bytes, usage.wal_buffers_full
    ));
    lines.push(format!("system usage: {}", usage.resources));
    lines
}

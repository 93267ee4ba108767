//! PostgreSQL 18's lazy vacuum, with the threshold as a parameter.
//!
//! Follows vacuumlazy.c, whose header comment is the best description of it. In
//! short:
//!
//! - **Phase I** ([`scan_heap`]) reads the blocks that cannot be skipped, prunes
//!   and freezes each under a cleanup lock, sets its bits in the visibility map,
//!   and notes the dead items (LP_DEAD) that indexes may still point to. Where
//!   others have a page pinned, a normal vacuum only takes note of what is there.
//! - **Phase II** ([`vacuum_indexes`]) deletes index entries of the dead items.
//! - **Phase III** ([`vacuum_heap`]) makes their line pointers free again.
//!
//! Phases II and III come after phase I, or whenever there is no room for more dead
//! items, after which phase I goes on. They are left out where the table has no
//! indexes, INDEX_CLEANUP is off, next to no page has dead items, or the failsafe
//! ([`failsafe`]) engaged. At the end, empty blocks are cut off ([`truncate`]), and
//! pg_class and the cumulative statistics are updated, in this order: a crash in
//! between leaves nothing that the server's own vacuum could not leave.
//!
//! [`scan_heap`]: super::scan_heap
//! [`vacuum_indexes`]: super::vacuum_indexes
//! [`vacuum_heap`]: super::vacuum_heap
//! [`failsafe`]: super::failsafe
//! [`truncate`]: super::truncate

use std::rc::Rc;

use pgrx::PgLogLevel;

use super::report::{Names, Report};
use super::threshold::InForce;
use crate::reading::ReadOptions;
use crate::server::error::report;
use crate::server::progress::VacuumProgress;
use crate::server::reader::Strategy;
use crate::server::relation::HeapRelation;
use crate::server::vacuum::dead_items::DeadItems;
use crate::server::vacuum::error_context::{ErrorContext, Phase};
use crate::server::vacuum::freezing::{Freezing, Horizons};
use crate::server::vacuum::indexes::Indexes;
use crate::server::vacuum::request::{IndexCleanup, VacuumRequest, begin_without_failsafe, random};
use crate::server::vacuum::statistics::{
    Advanced, RelationStatistics, Timestamp, count_visible, report_vacuum, update_pg_class,
};
use crate::server::vacuum::usage::UsageMeter;
use crate::settings;
use crate::skipping::{EAGER_SCAN_REGION_SIZE, EagerScan, Skipping};

/// A vacuum under way (vacuumlazy.c's LVRelState).
pub(super) struct Vacuum<'a> {
    pub request: &'a VacuumRequest,
    pub relation: &'a HeapRelation,
    pub names: Names,
    pub threshold: InForce,
    pub reading: ReadOptions,
    pub strategy: &'a Strategy,
    pub context: &'a ErrorContext,
    pub progress: &'a VacuumProgress,
    pub indexes: Indexes<'a>,
    pub freezing: Freezing,
    pub skipping: Skipping,
    pub eager: Rc<EagerScan>,
    pub steps: Steps,
    pub counts: Counts,
    /// Blocks that there are: those of the beginning, but for those cut off.
    pub rel_pages: u32,
}

/// What is done beside phase I. Changes on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    pub index_vacuuming: bool,
    pub index_cleanup: bool,
    pub truncation: bool,
    /// Phases II and III may be left out where there is next to nothing for them.
    pub may_bypass: bool,
}

impl Steps {
    fn asked_for(request: &VacuumRequest) -> Self {
        let index_cleanup = request.index_cleanup();
        Steps {
            index_vacuuming: index_cleanup != IndexCleanup::Off,
            index_cleanup: index_cleanup != IndexCleanup::Off,
            truncation: request.truncate(),
            may_bypass: index_cleanup != IndexCleanup::On,
        }
    }
}

/// What was read, found and done. Pages, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub scanned: u32,
    pub eagerly_scanned: u32,
    /// Read only because their range was below the threshold.
    pub below_threshold: u64,
    /// All-visible ones that are not all-frozen were skipped.
    pub skipped_all_visible: bool,
    pub removed: u32,
    /// With tuples newly frozen.
    pub frozen: u32,
    /// Newly all-visible in the map; those of them that are all-frozen; and those that
    /// were all-visible already and became all-frozen.
    pub newly_visible: u32,
    pub newly_visible_frozen: u32,
    pub newly_frozen: u32,
    pub with_dead_items: u32,
    /// With dead tuples that could not be removed, since others had them pinned.
    pub missed: u32,
    /// The last one that must stay, plus one.
    pub nonempty: u32,

    pub index_scans: u32,

    // Tuples and line pointers.
    pub removed_tuples: u64,
    pub frozen_tuples: u64,
    pub dead_items: u64,
    pub live_tuples: u64,
    pub recently_dead_tuples: u64,
    pub missed_dead_tuples: u64,
    /// Estimates for the whole table: all, and live ones.
    pub new_tuples: f64,
    pub new_live_tuples: f64,
}

/// Vacuums the relation that the server asks for.
pub fn vacuum(request: &VacuumRequest, threshold: InForce) {
    let meter = UsageMeter::start();
    request.with_relation(|relation| {
        let progress = VacuumProgress::start(relation.oid());
        let context = ErrorContext::begin(relation);
        let strategy = request.strategy();
        let mut vacuum = Vacuum::begin(request, relation, threshold, &strategy, &context, &progress);
        vacuum.announce();
        vacuum.run();
        let report = vacuum.into_report();
        context.enter(Phase::Unknown, None);
        progress.finishes();
        let advanced = report.vacuum_finished(relation, meter.started());
        progress.end();
        report.tell(advanced, &meter);
    });
}

impl<'a> Vacuum<'a> {
    fn begin(
        request: &'a VacuumRequest,
        relation: &'a HeapRelation,
        threshold: InForce,
        strategy: &'a Strategy,
        context: &'a ErrorContext,
        progress: &'a VacuumProgress,
    ) -> Self {
        let indexes = Indexes::open(relation);
        begin_without_failsafe();
        let freezing = Freezing::begin(request, relation);
        let skipping = if request.disable_page_skipping() {
            Skipping::Nothing
        } else if freezing.aggressive() {
            Skipping::AllFrozen
        } else {
            Skipping::AllVisible
        };
        Vacuum {
            request,
            relation,
            names: Names::of(relation),
            threshold,
            reading: ReadOptions { mode: settings::read_mode(), ahead: settings::read_ahead() },
            strategy,
            context,
            progress,
            indexes,
            eager: eager_scan(request, relation, &freezing, skipping),
            rel_pages: freezing.rel_pages(),
            freezing,
            skipping,
            steps: Steps::asked_for(request),
            counts: Counts::default(),
        }
    }

    fn announce(&self) {
        if self.request.verbose() {
            let aggressively = if self.aggressive() { "aggressively " } else { "" };
            report(PgLogLevel::INFO, format!("{aggressively}vacuuming \"{}\"", self.names.full()));
        }
    }

    /// All steps on the relation's files.
    fn run(&mut self) {
        // So that no parallel vacuum begins where that matters no more.
        self.check_failsafe();
        let mut dead_items = self.dead_items();
        self.scan_heap(&mut dead_items);
        dead_items.finish(&mut self.indexes);
        if self.steps.index_cleanup {
            self.indexes.update_pg_class();
        }
        self.indexes.close();
        if self.should_truncate() {
            self.truncate();
        }
    }

    fn into_report(self) -> Report<'a> {
        debug_assert!(self.freezing.keeps_promise(self.aggressive()));
        let horizons = if self.counts.skipped_all_visible {
            // What was skipped may hold older ones than those that were seen.
            Horizons::UNKNOWN
        } else {
            self.freezing.new_horizons()
        };
        Report { vacuum: self, horizons }
    }

    /// Whether every page is read that is not all-frozen.
    pub(super) fn aggressive(&self) -> bool {
        self.skipping != Skipping::AllVisible
    }

    /// A store for dead items, shared with workers where there are some.
    fn dead_items(&self) -> DeadItems {
        let workers = self.request.parallel_workers().filter(|_| self.indexes.len() > 1);
        let Some(workers) = workers.filter(|_| self.steps.index_vacuuming) else {
            return DeadItems::new();
        };
        if self.relation.is_temporary() {
            if workers > 0 {
                self.names.warn_not_parallel();
            }
            return DeadItems::new();
        }
        DeadItems::shared(self.relation, &self.indexes, workers, self.request.verbose(), self.strategy)
            .unwrap_or_else(DeadItems::new)
    }

    /// At INFO for who asked to be told, else at DEBUG2.
    pub(super) fn tell(&self, message: String) {
        let level = if self.request.verbose() { PgLogLevel::INFO } else { PgLogLevel::DEBUG2 };
        report(level, message);
    }
}

/// Eager scanning, where it is worth its while: a normal vacuum of a table of at least
/// two regions that holds something old enough to be frozen.
fn eager_scan(
    request: &VacuumRequest,
    relation: &HeapRelation,
    freezing: &Freezing,
    skipping: Skipping,
) -> Rc<EagerScan> {
    let failure_rate = request.eager_freeze_failure_rate();
    let small = freezing.rel_pages() < 2 * EAGER_SCAN_REGION_SIZE;
    if failure_rate == 0.0 || skipping != Skipping::AllVisible || small || !freezing.has_old_tuples() {
        return EagerScan::off();
    }
    let (all_visible, all_frozen) = count_visible(relation);
    EagerScan::new(all_visible.saturating_sub(all_frozen), failure_rate, random)
}

impl Report<'_> {
    /// Enters what became of the relation into pg_class and the cumulative statistics.
    fn vacuum_finished(&self, relation: &HeapRelation, started: Timestamp) -> Advanced {
        let Vacuum { counts, rel_pages, indexes, .. } = &self.vacuum;
        // The map may count blocks that were cut off, or frozen ones that were
        // cleared meanwhile.
        let (all_visible, all_frozen) = count_visible(relation);
        let all_visible = all_visible.min(*rel_pages);
        let statistics = RelationStatistics {
            pages: *rel_pages,
            tuples: counts.new_live_tuples,
            all_visible,
            all_frozen: all_frozen.min(all_visible),
            has_index: !indexes.is_empty(),
            horizons: self.horizons,
        };
        let advanced = update_pg_class(relation, &statistics);
        // Dead items that stay are not reported, so that the next vacuum does not come
        // sooner for them.
        report_vacuum(
            relation,
            counts.new_live_tuples.max(0.0),
            counts.recently_dead_tuples + counts.missed_dead_tuples,
            started,
        );
        advanced
    }
}

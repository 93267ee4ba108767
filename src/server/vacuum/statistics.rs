//! Where a vacuum enters what it found: pg_class, the cumulative statistics, the
//! free space map.

use pgrx::pg_sys;

use super::freezing::Horizons;
use crate::server::boundary::guarded;
use crate::server::raw;
use crate::server::relation::HeapRelation;

/// What pg_class is to say of a relation.
#[derive(Clone, Copy, Debug)]
pub struct RelationStatistics {
    /// Blocks.
    pub pages: u32,
    /// Live tuples, as far as known.
    pub tuples: f64,
    /// Blocks that are all-visible.
    pub all_visible: u32,
    /// Blocks that are all-frozen.
    pub all_frozen: u32,
    /// There are indexes.
    pub has_index: bool,
    /// relfrozenxid and relminmxid.
    pub horizons: Horizons,
}

/// Which of the two horizons were advanced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Advanced {
    /// relfrozenxid.
    pub xid: bool,
    /// relminmxid.
    pub mxid: bool,
}

/// Enters `statistics` into pg_class, in place.
pub fn update_pg_class(relation: &HeapRelation, statistics: &RelationStatistics) -> Advanced {
    let mut advanced = Advanced::default();
    // SAFETY: the relation is open.
    unsafe {
        guarded(|| {
            raw::vac_update_relstats(
                relation.as_ptr(),
                statistics.pages,
                statistics.tuples,
                statistics.all_visible,
                statistics.all_frozen,
                statistics.has_index,
                statistics.horizons.xid,
                statistics.horizons.mxid,
                &mut advanced.xid,
                &mut advanced.mxid,
                false,
            );
        });
    }
    advanced
}

/// A point in time of the server's clock, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp(pub(super) pg_sys::TimestampTz);

impl Timestamp {
    /// Now.
    pub fn now() -> Self {
        // SAFETY: reads the clock.
        Timestamp(unsafe { pg_sys::GetCurrentTimestamp() })
    }
}

/// Reports a vacuum that began at `started` to the cumulative statistics.
pub fn report_vacuum(relation: &HeapRelation, live_tuples: f64, dead_tuples: u64, started: Timestamp) {
    // SAFETY: the relation is open.
    unsafe {
        pg_sys::pgstat_report_vacuum(
            relation.oid(),
            relation.is_shared(),
            live_tuples as i64,
            dead_tuples as i64,
            started.0,
        );
    }
}

/// How many blocks the map says are all-visible, and all-frozen.
pub fn count_visible(relation: &HeapRelation) -> (u32, u32) {
    let (mut all_visible, mut all_frozen) = (0, 0);
    // SAFETY: the relation is open.
    unsafe {
        guarded(|| raw::visibilitymap_count(relation.as_ptr(), &mut all_visible, &mut all_frozen));
    }
    (all_visible, all_frozen)
}

/// Live tuples of the whole relation, from those of the pages that were scanned.
pub fn estimate_tuples(relation: &HeapRelation, pages: u32, scanned_pages: u32, scanned_tuples: u64) -> f64 {
    // SAFETY: the relation is open.
    unsafe { pg_sys::vac_estimate_reltuples(relation.as_ptr(), pages, scanned_pages, scanned_tuples as f64) }
}

/// Makes free space of blocks `from` to `to` known to the upper levels of the free
/// space map.
pub fn vacuum_free_space_map(relation: &HeapRelation, from: u32, to: u32) {
    // SAFETY: the relation is open.
    unsafe { guarded(|| raw::FreeSpaceMapVacuumRange(relation.as_ptr(), from, to)) };
}

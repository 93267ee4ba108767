//! What the server asks of a VACUUM, and what it lends to it.

use std::ffi::c_int;

use pgrx::pg_sys;

use crate::server::boundary::guarded;
use crate::server::raw;
use crate::server::reader::Strategy;
use crate::server::relation::HeapRelation;

/// The arguments of a table access method's `relation_vacuum`.
#[derive(Clone, Copy)]
pub struct VacuumRequest {
    pub(in crate::server) relation: pg_sys::Relation,
    pub(in crate::server) params: *mut pg_sys::VacuumParams,
    pub(in crate::server) strategy: pg_sys::BufferAccessStrategy,
}

/// INDEX_CLEANUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexCleanup {
    /// Unless there is next to nothing to clean.
    Auto,
    /// Not at all.
    Off,
    /// In any case.
    On,
}

impl VacuumRequest {
    /// Calls `body` with the relation, which the server keeps open and locked
    /// meanwhile.
    pub fn with_relation<T>(&self, body: impl FnOnce(&HeapRelation) -> T) -> T {
        // SAFETY: the server keeps it open during the call that made this request.
        let relation = unsafe { HeapRelation::lent(self.relation) };
        body(&relation)
    }

    /// The relation's OID.
    pub fn oid(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_id }
    }

    /// Whether the heap's own routine serves it. Another access method may have
    /// taken the callback over from the heap, and know more of its pages.
    pub fn is_of_heap(&self) -> bool {
        // SAFETY: an open table has its access method's routine.
        unsafe { (*self.relation).rd_tableam == pg_sys::GetHeapamTableAmRoutine() }
    }

    pub(super) fn params(&self) -> &pg_sys::VacuumParams {
        // SAFETY: the server's, for the duration of the call.
        unsafe { &*self.params }
    }

    fn has(&self, option: u32) -> bool {
        self.params().options & option != 0
    }

    /// VERBOSE.
    pub fn verbose(&self) -> bool {
        self.has(pg_sys::VACOPT_VERBOSE)
    }

    /// DISABLE_PAGE_SKIPPING.
    pub fn disable_page_skipping(&self) -> bool {
        self.has(pg_sys::VACOPT_DISABLE_PAGE_SKIPPING)
    }

    /// INDEX_CLEANUP.
    pub fn index_cleanup(&self) -> IndexCleanup {
        match self.params().index_cleanup {
            pg_sys::VacOptValue::VACOPTVALUE_DISABLED => IndexCleanup::Off,
            pg_sys::VacOptValue::VACOPTVALUE_ENABLED => IndexCleanup::On,
            _ => IndexCleanup::Auto,
        }
    }

    /// TRUNCATE.
    pub fn truncate(&self) -> bool {
        self.params().truncate != pg_sys::VacOptValue::VACOPTVALUE_DISABLED
    }

    /// PARALLEL: how many workers, 0 for as many as fit; None for no parallelism.
    pub fn parallel_workers(&self) -> Option<c_int> {
        Some(self.params().nworkers).filter(|workers| *workers >= 0)
    }

    /// vacuum_max_eager_freeze_failure_rate: 0, for no eager scanning, to 1.
    pub fn eager_freeze_failure_rate(&self) -> f64 {
        self.params().max_eager_freeze_failure_rate
    }

    /// The autovacuum that prevents wraparound.
    pub fn is_wraparound(&self) -> bool {
        self.params().is_wraparound
    }

    /// From how many milliseconds on an autovacuum is logged; None for never, and
    /// for a command.
    pub fn log_min_duration(&self) -> Option<c_int> {
        let duration = self.params().log_min_duration;
        (is_autovacuum() && duration >= 0).then_some(duration)
    }

    /// The ring of buffers to read through.
    pub fn strategy(&self) -> Strategy {
        // SAFETY: the server's, for the duration of the call.
        unsafe { Strategy::lent(self.strategy) }
    }
}

/// Whether this is an autovacuum worker.
pub fn is_autovacuum() -> bool {
    // SAFETY: a constant of this process.
    unsafe { pg_sys::MyBackendType == pg_sys::BackendType::B_AUTOVAC_WORKER }
}

/// The memory that dead items may take, in kilobytes: maintenance_work_mem, or
/// autovacuum_work_mem.
pub(super) fn work_mem() -> c_int {
    // SAFETY: settings.
    unsafe {
        if is_autovacuum() && raw::autovacuum_work_mem != -1 {
            raw::autovacuum_work_mem
        } else {
            pg_sys::maintenance_work_mem
        }
    }
}

/// Sleeps if the cost-based delay says so, and answers cancel.
pub fn delay_point() {
    // SAFETY: flags of this process; no lock is held. Most of the time there is
    // nothing to do, which the server's function would find out after a call.
    unsafe {
        let wanted = pg_sys::InterruptPending != 0 || pg_sys::ConfigReloadPending != 0;
        if wanted || pg_sys::VacuumCostActive {
            guarded(|| raw::vacuum_delay_point(false));
        }
    }
}

/// Whether the failsafe is engaged: by this vacuum or one of its parts.
pub fn failsafe_is_active() -> bool {
    // SAFETY: a flag of this process.
    unsafe { pg_sys::VacuumFailsafeActive }
}

/// A vacuum begins: it has not engaged the failsafe yet.
pub fn begin_without_failsafe() {
    // SAFETY: as above.
    unsafe { pg_sys::VacuumFailsafeActive = false };
}

/// Engages the failsafe, for whoever asks.
pub fn engage_failsafe() {
    // SAFETY: as above.
    unsafe { pg_sys::VacuumFailsafeActive = true };
}

/// Goes on without cost-based delay.
pub fn end_delays() {
    // SAFETY: a flag and a counter of this process.
    unsafe {
        pg_sys::VacuumCostActive = false;
        pg_sys::VacuumCostBalance = 0;
    }
}

/// A random number, from the source that the server's own vacuum draws from.
pub fn random() -> u32 {
    // SAFETY: the state is this process's own.
    unsafe { pg_sys::pg_prng_uint32(&raw mut pg_sys::pg_global_prng_state) }
}

//! Up to where a vacuum that began now would remove and freeze.
//!
//! On a primary that is the server's `vacuum_get_cutoffs` (vacuum.c). That
//! function is not made for a standby, where it takes every vacuum for an
//! aggressive one: a standby does not know how full the space of multixact
//! members is, so `MultiXactMemberFreezeThreshold` assumes the worst. There the
//! same limits are applied here, for members that are not about to run out.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use pgrx::pg_sys;

use super::relation::HeapRelation;

// Settings of the server that pgrx has no declarations for (autovacuum.h).
unsafe extern "C" {
    static autovacuum_freeze_max_age: c_int;
    static autovacuum_multixact_freeze_max_age: c_int;
}

/// FirstMultiXactId (multixact.h).
const FIRST_MULTIXACT: u32 = 1;

/// What a plain VACUUM that began now would go by.
#[derive(Clone, Copy, Debug)]
pub struct Cutoffs {
    /// It would be aggressive: read every page that is not all-frozen.
    pub aggressive: bool,
    /// Tuples deleted by a transaction before this one are dead to everyone.
    pub oldest_xmin: pg_sys::TransactionId,
}

impl Cutoffs {
    /// Those of `relation` now.
    pub fn of(relation: &HeapRelation) -> Cutoffs {
        // SAFETY: reads a flag of this process.
        if unsafe { pg_sys::RecoveryInProgress() } { on_standby(relation) } else { on_primary(relation) }
    }
}

fn on_primary(relation: &HeapRelation) -> Cutoffs {
    let params = pg_sys::VacuumParams {
        freeze_min_age: -1,
        freeze_table_age: -1,
        multixact_freeze_min_age: -1,
        multixact_freeze_table_age: -1,
        ..Default::default()
    };
    let mut cutoffs = MaybeUninit::<pg_sys::VacuumCutoffs>::zeroed();
    // SAFETY: the relation is open, both structs are the server's own, and all
    // fields of the second are plain numbers.
    let (aggressive, cutoffs) = unsafe {
        let aggressive = pg_sys::vacuum_get_cutoffs(relation.as_ptr(), &params, cutoffs.as_mut_ptr());
        (aggressive, cutoffs.assume_init())
    };
    Cutoffs { aggressive, oldest_xmin: cutoffs.OldestXmin }
}

fn on_standby(relation: &HeapRelation) -> Cutoffs {
    let (frozen_xid, min_mxid) = relation.oldest_unfrozen();
    // SAFETY: the relation is open; integers of this process, and look-ups in
    // shared memory.
    unsafe {
        let table_age = age_limit(pg_sys::vacuum_freeze_table_age, autovacuum_freeze_max_age);
        let next_xid = pg_sys::ReadNextTransactionId().into_inner();
        let xid_limit = counted_back(next_xid, table_age, pg_sys::FirstNormalTransactionId.into_inner());

        let table_age =
            age_limit(pg_sys::vacuum_multixact_freeze_table_age, autovacuum_multixact_freeze_max_age);
        let next_mxid = pg_sys::ReadNextMultiXactId().into_inner();
        let mxid_limit = counted_back(next_mxid, table_age, FIRST_MULTIXACT);

        Cutoffs {
            aggressive: pg_sys::TransactionIdPrecedesOrEquals(frozen_xid, xid_limit.into())
                || pg_sys::MultiXactIdPrecedesOrEquals(min_mxid, mxid_limit.into()),
            oldest_xmin: pg_sys::GetOldestNonRemovableTransactionId(relation.as_ptr()),
        }
    }
}

/// The age from which a vacuum is aggressive: as set, but early enough for it to
/// come before the autovacuum that prevents wraparound.
fn age_limit(table_age: c_int, max_age: c_int) -> u32 {
    let early = (f64::from(max_age) * 0.95) as c_int;
    table_age.min(early).unsigned_abs()
}

/// The number `age` before `next` in a space that wraps around, and whose
/// numbers below `first` are not in use.
fn counted_back(next: u32, age: u32, first: u32) -> u32 {
    next.wrapping_sub(age).max(first)
}

//! Up to where a vacuum removes and freezes, and what it leaves unfrozen.

use std::mem::MaybeUninit;

use pgrx::pg_sys;

use super::request::VacuumRequest;
use crate::server::boundary::guarded;
use crate::server::raw;
use crate::server::relation::HeapRelation;

/// The cutoffs of a vacuum (vacuum.h's VacuumCutoffs), and the oldest transaction
/// and multixact that stand in what it has been through: what relfrozenxid and
/// relminmxid may become.
pub struct Freezing {
    pub(super) cutoffs: pg_sys::VacuumCutoffs,
    pub(super) vistest: *mut pg_sys::GlobalVisState,
    pub(super) oldest_xid: pg_sys::TransactionId,
    pub(super) oldest_mxid: pg_sys::MultiXactId,
    pub(super) result: pg_sys::PruneFreezeResult,
    aggressive: bool,
    rel_pages: u32,
}

impl Freezing {
    /// Those of a vacuum of `relation` that begins now.
    pub fn begin(request: &VacuumRequest, relation: &HeapRelation) -> Self {
        let mut cutoffs = MaybeUninit::<pg_sys::VacuumCutoffs>::zeroed();
        // SAFETY: the relation is open and the parameters are those that the
        // server made for it. Cutoffs, size and vistest are taken in this order,
        // so that the pages to be scanned hold nothing that is older than the
        // cutoffs without the scan seeing it, and so that whatever is dead by the
        // cutoffs is dead by vistest.
        unsafe {
            let params = request.params();
            let aggressive = pg_sys::vacuum_get_cutoffs(relation.as_ptr(), params, cutoffs.as_mut_ptr());
            let cutoffs = cutoffs.assume_init();
            let rel_pages = relation.pages();
            Freezing {
                vistest: pg_sys::GlobalVisTestFor(relation.as_ptr()),
                oldest_xid: cutoffs.OldestXmin,
                oldest_mxid: cutoffs.OldestMxact,
                result: pg_sys::PruneFreezeResult::default(),
                aggressive,
                rel_pages,
                cutoffs,
            }
        }
    }

    /// It must read every page that is not all-frozen.
    pub fn aggressive(&self) -> bool {
        self.aggressive
    }

    /// Blocks of the relation when it began.
    pub fn rel_pages(&self) -> u32 {
        self.rel_pages
    }

    /// Tuples deleted by a transaction before this one are dead to everyone.
    pub fn oldest_xmin(&self) -> u32 {
        self.cutoffs.OldestXmin.into_inner()
    }

    /// What the relation's relfrozenxid and relminmxid were.
    pub fn old_horizons(&self) -> Horizons {
        Horizons { xid: self.cutoffs.relfrozenxid, mxid: self.cutoffs.relminmxid }
    }

    /// What they can become: the oldest that stand in the pages it has been through.
    pub fn new_horizons(&self) -> Horizons {
        Horizons { xid: self.oldest_xid, mxid: self.oldest_mxid }
    }

    /// There are tuples that it has to freeze, by their age: relfrozenxid or
    /// relminmxid is before the limit.
    pub fn has_old_tuples(&self) -> bool {
        let VacuumLimits { xid, mxid } = VacuumLimits::of(&self.cutoffs);
        xid || mxid
    }

    /// How many transactions ago the cutoff was, now.
    pub fn age_of_oldest_xmin(&self) -> i32 {
        // SAFETY: reads a counter in shared memory.
        let next = unsafe { pg_sys::ReadNextTransactionId() };
        next.into_inner().wrapping_sub(self.oldest_xmin()) as i32
    }

    /// Whether the relation is so old that the failsafe must engage.
    pub fn needs_failsafe(&self) -> bool {
        // SAFETY: reads counters and settings.
        unsafe { guarded(|| raw::vacuum_xid_failsafe_check(&self.cutoffs)) }
    }

    /// The new values keep what a vacuum promises: an `aggressive` one advances past
    /// the freeze limit, any other does not go back.
    pub fn keeps_promise(&self, aggressive: bool) -> bool {
        let cutoffs = &self.cutoffs;
        let (xid, mxid) = if aggressive {
            (cutoffs.FreezeLimit, cutoffs.MultiXactCutoff)
        } else {
            (cutoffs.relfrozenxid, cutoffs.relminmxid)
        };
        // SAFETY: they compare numbers.
        unsafe {
            (self.oldest_xid == cutoffs.OldestXmin
                || pg_sys::TransactionIdPrecedesOrEquals(xid, self.oldest_xid))
                && (self.oldest_mxid == cutoffs.OldestMxact
                    || pg_sys::MultiXactIdPrecedesOrEquals(mxid, self.oldest_mxid))
        }
    }
}

/// A relfrozenxid and a relminmxid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizons {
    pub(super) xid: pg_sys::TransactionId,
    pub(super) mxid: pg_sys::MultiXactId,
}

impl Horizons {
    /// Neither is known.
    pub const UNKNOWN: Horizons =
        Horizons { xid: pg_sys::InvalidTransactionId, mxid: pg_sys::MultiXactId::from_inner(0) };

    /// The transaction.
    pub fn xid(self) -> u32 {
        self.xid.into_inner()
    }

    /// The multixact.
    pub fn mxid(self) -> u32 {
        self.mxid.into_inner()
    }
}

/// Which of the two limits something in the relation is before.
struct VacuumLimits {
    xid: bool,
    mxid: bool,
}

impl VacuumLimits {
    fn of(cutoffs: &pg_sys::VacuumCutoffs) -> Self {
        let normal = cutoffs.relfrozenxid.into_inner() >= pg_sys::FirstNormalTransactionId.into_inner();
        let valid = cutoffs.relminmxid.into_inner() != 0;
        // SAFETY: they compare numbers.
        unsafe {
            VacuumLimits {
                xid: normal && pg_sys::TransactionIdPrecedes(cutoffs.relfrozenxid, cutoffs.FreezeLimit),
                mxid: valid && pg_sys::MultiXactIdPrecedes(cutoffs.relminmxid, cutoffs.MultiXactCutoff),
            }
        }
    }
}

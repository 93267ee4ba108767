//! The failsafe: where a table is so old that wraparound is near, everything that does
//! not help against it is left out (vacuumlazy.c, `lazy_check_wraparound_failsafe`).

use pgrx::PgSqlErrorCode;

use super::engine::Vacuum;
use crate::server::error::UserError;
use crate::server::vacuum::request::{end_delays, engage_failsafe, failsafe_is_active};

impl Vacuum<'_> {
    /// Engages the failsafe if the table is too old; whether it is engaged.
    pub(super) fn check_failsafe(&mut self) -> bool {
        if failsafe_is_active() {
            return true;
        }
        if !self.freezing.needs_failsafe() {
            return false;
        }
        engage_failsafe();
        // All of shared buffers, no indexes, no lock that others would wait for.
        self.strategy.give_up();
        self.steps.index_vacuuming = false;
        self.steps.index_cleanup = false;
        self.steps.truncation = false;
        self.progress.leaves_indexes();
        self.warn_of_failsafe();
        end_delays();
        true
    }

    fn warn_of_failsafe(&self) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!(
                "bypassing nonessential maintenance of table \"{}\" as a failsafe after {} index scans",
                self.names.full(),
                self.counts.index_scans
            ),
        )
        .detail("The table's relfrozenxid or relminmxid is too far in the past.")
        .hint(
            "Consider increasing configuration parameter \"maintenance_work_mem\" or \
             \"autovacuum_work_mem\".\nYou might also need to consider other ways for VACUUM to keep up \
             with the allocation of transaction IDs.",
        )
        .warn();
    }
}

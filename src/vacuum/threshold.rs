//! Which threshold is in force for a table, and where it comes from. The first of
//! these that there is:
//!
//! 1. the option of the VACUUM command that is running;
//! 2. what the session has SET, or its client asked for when it connected;
//! 3. the table's label, or for a TOAST table without one that of its main table;
//! 4. what is configured for the role, the database or the server, or else 32.
//!
//! An autovacuum worker has neither of the first two.

use pgrx::{PgSqlErrorCode, pg_sys};

use super::labels;
use crate::server::error::UserError;
use crate::server::process_utility;
use crate::settings;

/// A threshold and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The number of consecutive skippable pages from which they are skipped.
    pub threshold: i32,
    /// Where it comes from.
    pub source: Source,
}

/// Where a threshold comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An option of the VACUUM command.
    Command,
    /// The session's own setting.
    Session,
    /// A label.
    Table,
    /// The configuration.
    Default,
}

impl Source {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Source::Command => "command",
            Source::Session => "session",
            Source::Table => "table",
            Source::Default => "default",
        }
    }
}

impl InForce {
    /// What is in force for the relation of that OID, which must be open.
    pub fn of(relation: pg_sys::Oid) -> InForce {
        let of = |source| move |threshold| InForce { threshold, source };
        let session = || settings::threshold_is_sessions().then(settings::skip_pages_threshold);
        None.or_else(|| process_utility::current_value().map(of(Source::Command)))
            .or_else(|| session().map(of(Source::Session)))
            .or_else(|| labels::threshold_of(relation).map(of(Source::Table)))
            .unwrap_or_else(|| of(Source::Default)(settings::skip_pages_threshold()))
    }
}

/// A threshold that a user gives, if it can be used.
///
/// # Errors
///
/// 22023 below -1, 0A000 for -1.
pub fn checked(value: i32) -> Result<i32, UserError> {
    match value {
        0.. => Ok(value),
        -1 => Err(UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "automatic threshold is not available",
        )
        .hint("Give a threshold of 0 or more; the server's own is 32.")),
        _ => Err(UserError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("threshold {value} is out of range"),
        )
        .detail("A threshold is a number of pages, from 0 to 2147483647.")),
    }
}

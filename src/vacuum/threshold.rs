//! Which threshold is in force for a table, and where it comes from. The first of
//! these that there is:
//!
//! 1. what the session has SET, or its client asked for when it connected;
//! 2. what is configured for the role, the database or the server, or else 32.
//!
//! An autovacuum worker does not have the first.

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
    /// The session's own setting.
    Session,
    /// The configuration.
    Default,
}

impl InForce {
    /// What is in force now.
    pub fn now() -> InForce {
        let source = if settings::threshold_is_sessions() { Source::Session } else { Source::Default };
        InForce { threshold: settings::skip_pages_threshold(), source }
    }
}

//! A threshold of a table's own, kept as a security label:
//!
//! ```sql
//! SECURITY LABEL FOR vacuum_skip ON TABLE orders IS 'skip_pages_threshold=4'
//! ```
//!
//! Storage parameters would be the natural place, but the server takes none of an
//! extension for tables. A label does what they do: it is transactional, dumped by
//! pg_dump, and dropped with the table.

use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::threshold;
use crate::server::error::UserError;
use crate::server::relation::{HeapRelation, OpenError, main_table_of_toast, relation_name};
use crate::server::security_label::{self, Object};

const PROVIDER: &CStr = c"vacuum_skip";
const NAME: &str = "skip_pages_threshold";

/// Registers the provider of labels.
pub fn register() {
    security_label::register_provider(PROVIDER, check);
}

/// The threshold of a relation by its own label, or else, of a TOAST table, by
/// that of its main table.
pub fn threshold_of(relation: pg_sys::Oid) -> Option<i32> {
    own_threshold(relation).or_else(|| main_table_of_toast(relation).and_then(own_threshold))
}

/// A label that cannot be read must not keep a table from being vacuumed.
fn own_threshold(relation: pg_sys::Oid) -> Option<i32> {
    let label = security_label::relation_label(PROVIDER, relation)?;
    let threshold = parse(&label).ok();
    if threshold.is_none() {
        warn_of_ignored(&label, relation);
    }
    threshold
}

/// Gives a relation a threshold of its own, or takes it away.
///
/// # Errors
///
/// Those of [`threshold::checked`] and of [`HeapRelation::open_as_owner`].
pub fn set(relation: pg_sys::Oid, threshold: Option<i32>) -> Result<(), UserError> {
    let threshold = threshold.map(threshold::checked).transpose()?;
    let label = threshold.map(|threshold| format!("{NAME}={threshold}"));
    HeapRelation::open_as_owner(relation, c"vacuum_skip_set_threshold()").map_err(with_hint)?;
    security_label::set_relation_label(PROVIDER, relation, label.as_deref());
    Ok(())
}

/// Whether `object` takes `label`. Anything may lose its label.
fn check(object: &Object, label: Option<&str>) -> Result<(), UserError> {
    let Some(label) = label else { return Ok(()) };
    let Some(relation) = object.relation() else {
        return Err(UserError::new(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("cannot set security label on {}", object.description()),
        )
        .detail("Labels of provider \"vacuum_skip\" are for tables and materialized views only."));
    };
    HeapRelation::open_locked(relation).map_err(with_hint)?;
    parse(label).map(|_| ())
}

fn with_hint(OpenError { error, partitions_of }: OpenError) -> UserError {
    match partitions_of {
        None => error,
        Some(table) => error.hint(format!(
            "VACUUM goes by the labels of its partitions: SELECT vacuum_skip_set_threshold(relid, 4) \
             FROM pg_partition_tree('{}') WHERE isleaf.",
            table.replace('\'', "''")
        )),
    }
}

/// The threshold in the text of a label.
fn parse(label: &str) -> Result<i32, UserError> {
    let value = label.split_once('=').filter(|(name, _)| name.trim_ascii() == NAME);
    let value = value.map(|(_, value)| value.trim_ascii());
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    match value {
        Some("-1") => threshold::checked(-1),
        Some(text) => text.parse().ok().filter(|_| is_number(&text)).ok_or_else(|| invalid(label)),
        None => Err(invalid(label)),
    }
}

fn warn_of_ignored(label: &str, relation: pg_sys::Oid) {
    let name = relation_name(relation).unwrap_or_default();
    UserError::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("ignoring invalid security label \"{label}\" of relation \"{name}\""),
    )
    .hint("Label the relation anew, or remove its label, with vacuum_skip_set_threshold.")
    .warn();
}

fn invalid(label: &str) -> UserError {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid security label \"{label}\" for provider \"vacuum_skip\""),
    )
    .detail(format!("A label has the form {NAME}=N, where N is an integer from 0 to {}.", i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_holds_one_number() {
        for (label, threshold) in [
            ("skip_pages_threshold=4", 4),
            ("skip_pages_threshold=0", 0),
            ("skip_pages_threshold=2147483647", i32::MAX),
            ("skip_pages_threshold=007", 7),
            (" skip_pages_threshold\t=\n 32 ", 32),
        ] {
            assert_eq!(parse(label).ok(), Some(threshold), "{label:?}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for label in [
            "",
            "4",
            "=4",
            "skip_pages_threshold",
            "skip_pages_threshold=",
            "skip_pages_threshold=x",
            "skip_pages_threshold=+4",
            "skip_pages_threshold=-0",
            "skip_pages_threshold=-1",
            "skip_pages_threshold=-2",
            "skip_pages_threshold=4.0",
            "skip_pages_threshold=4 5",
            "skip_pages_threshold=4,",
            "skip_pages_threshold==4",
            "skip_pages_threshold=2147483648",
            "SKIP_PAGES_THRESHOLD=4",
            "skip pages threshold=4",
            "vacuum_skip.skip_pages_threshold=4",
            "skip_pages_threshold=4; skip_pages_threshold=5",
        ] {
            assert!(parse(label).is_err(), "{label:?}");
        }
    }
}

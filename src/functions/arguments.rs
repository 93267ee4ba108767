//! Checks of arguments that several functions take.

use pgrx::PgSqlErrorCode;

use crate::server::error::UserError;
use crate::server::regclass::Regclass;
use crate::server::relation::{HeapRelation, OpenError};
use crate::settings::{self, ReadMode};
use crate::skipping::Threshold;
use crate::vacuum::threshold::{self, InForce};

/// The most thresholds that one plan answers for.
const MOST_THRESHOLDS: usize = 1000;

/// The most cells of a picture in one direction.
const MOST_CELLS: i32 = 1000;

fn invalid(message: String) -> UserError {
    UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
}

/// The relation given, opened for `function`.
///
/// # Errors
///
/// Those of [`HeapRelation::open`]; for a partitioned table with a hint that
/// applies the function to its partitions.
pub fn relation(given: Regclass, function: &str) -> Result<HeapRelation, UserError> {
    HeapRelation::open(given.0).map_err(|OpenError { error, partitions_of }| match partitions_of {
        None => error,
        Some(table) => error.hint(format!(
            "Its partitions hold the data: SELECT p.relid, s.* FROM pg_partition_tree('{}') AS p, \
             LATERAL {function}(p.relid) AS s WHERE p.isleaf.",
            table.replace('\'', "''")
        )),
    })
}

/// A threshold that may be given.
///
/// # Errors
///
/// 22023 below -1, 0A000 for -1.
pub fn threshold(given: Option<i32>) -> Result<Option<Threshold>, UserError> {
    given.map(checked_threshold).transpose()
}

fn checked_threshold(given: i32) -> Result<Threshold, UserError> {
    threshold::checked(given).map(in_pages)
}

/// The threshold that was given, or else the one in force for `relation`.
pub fn threshold_for(relation: &HeapRelation, given: Option<Threshold>) -> Threshold {
    given.unwrap_or_else(|| in_pages(InForce::of(relation.oid()).threshold))
}

/// A threshold in force or checked is not negative.
fn in_pages(threshold: i32) -> Threshold {
    Threshold::new(threshold.unsigned_abs())
}

/// The thresholds of a plan.
///
/// # Errors
///
/// 22023 where there is none, 54000 where there are too many, 22004 where one
/// is null, and those of [`threshold()`].
pub fn thresholds(given: &[Option<i32>]) -> Result<Vec<Threshold>, UserError> {
    if given.is_empty() {
        return Err(invalid("thresholds must not be empty".into())
            .hint("Leave the argument out for a choice of thresholds from 1 to 128."));
    }
    if given.len() > MOST_THRESHOLDS {
        return Err(UserError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("cannot plan for more than {MOST_THRESHOLDS} thresholds at once"),
        )
        .detail(format!("The array has {} elements.", given.len())));
    }
    let element = |given: &Option<i32>| match given {
        Some(value) => checked_threshold(*value),
        None => Err(UserError::new(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "thresholds must not contain nulls",
        )),
    };
    given.iter().map(element).collect()
}

/// A read mode given, or else the session's.
///
/// # Errors
///
/// 22023 for any other name.
pub fn read_mode(given: Option<&str>) -> Result<ReadMode, UserError> {
    let Some(name) = given else {
        return Ok(settings::read_mode());
    };
    ReadMode::from_name(name).ok_or_else(|| {
        invalid(format!("invalid value for parameter \"read_mode\": \"{name}\""))
            .hint(format!("Available values: {}.", ReadMode::ALL.map(ReadMode::name).join(", ")))
    })
}

/// The width or height of a picture, in cells.
///
/// # Errors
///
/// 22023 where it is out of range.
pub fn cells(name: &str, given: Option<i32>, default: i32) -> Result<u32, UserError> {
    let value = given.unwrap_or(default);
    if (1..=MOST_CELLS).contains(&value) {
        return Ok(value.unsigned_abs());
    }
    Err(invalid(format!("{name} {value} is out of range"))
        .detail(format!("The {name} of a map is a number of characters, from 1 to {MOST_CELLS}.")))
}

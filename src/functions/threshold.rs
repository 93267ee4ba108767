//! The threshold of a table: `vacuum_skip_threshold`.

use pgrx::prelude::*;

use super::arguments;
use crate::server::error::OrRaise;
use crate::server::regclass::Regclass;
use crate::vacuum::threshold::InForce;

#[pg_extern(volatile, parallel_restricted)]
fn vacuum_skip_threshold(
    rel: Regclass,
) -> TableIterator<'static, (name!(threshold, i32), name!(source, String))> {
    arguments::relation(rel, "vacuum_skip_threshold").or_raise();
    let InForce { threshold, source } = InForce::now();
    TableIterator::once((threshold, source.name().to_string()))
}

//! The threshold of a table: `vacuum_skip_threshold` and
//! `vacuum_skip_set_threshold`.

use pgrx::prelude::*;

use super::arguments;
use crate::server::error::OrRaise;
use crate::server::regclass::Regclass;
use crate::vacuum::labels;
use crate::vacuum::threshold::InForce;

#[pg_extern(volatile, parallel_restricted)]
fn vacuum_skip_threshold(
    rel: Regclass,
) -> TableIterator<'static, (name!(threshold, i32), name!(source, String))> {
    let relation = arguments::relation(rel, "vacuum_skip_threshold").or_raise();
    let InForce { threshold, source } = InForce::of(relation.oid());
    TableIterator::once((threshold, source.name().to_string()))
}

#[pg_extern(volatile, parallel_unsafe)]
fn vacuum_skip_set_threshold(rel: Option<Regclass>, threshold: Option<i32>) {
    if let Some(rel) = rel {
        labels::set(rel.0, threshold).or_raise();
    }
}

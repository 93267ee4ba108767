//! skeleton
#![allow(missing_docs)]
use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

#[pg_extern]
fn vacuum_skip_hello() -> &'static str {
    "hello"
}

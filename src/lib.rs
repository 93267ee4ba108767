//! `vacuum_skip`: PostgreSQL's SKIP_PAGES_THRESHOLD as a setting.
//!
//! VACUUM skips pages that the visibility map marks all-visible, but only where
//! at least 32 of them follow one another, a constant compiled into the server.
//! This extension makes that constant a setting on a stock server, for VACUUM
//! itself and for a read-only scan of a table as VACUUM's first phase would do
//! it, and tells from the visibility map alone what any threshold would read.
//!
//! Where to look: [`skipping`] is the rule, `reading` how the chosen blocks are
//! read, `scan` the read-only heap scan, `vacuum` the real VACUUM, `functions` what SQL calls, `settings` every GUC, and
//! `server` the only code that touches the server's C interface. Arrows go one
//! way: functions → scan, vacuum → reading → skipping, server.

#![deny(unsafe_code)]

mod functions;
mod reading;
mod scan;
mod server;
mod settings;
pub mod skipping;
mod vacuum;

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

/// Called by the server when it loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    settings::register();
    vacuum::install();
}

/// What `cargo pgrx test` asks of an extension.
#[cfg(test)]
pub mod pg_test {
    /// Nothing to prepare.
    pub fn setup(_options: Vec<&str>) {}

    /// Settings of the server under test, `name = value`, a line each in the
    /// environment variable VACUUM_SKIP_TEST_CONF: where the staged library is.
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        let lines = std::env::var("VACUUM_SKIP_TEST_CONF").unwrap_or_default();
        lines.lines().map(|line| &*Box::leak(line.to_owned().into_boxed_str())).collect()
    }
}

//! Black-box tests on live servers: the harness.
//!
//! Each file in `tests/` is about one promise of the extension. It starts
//! throwaway servers through `scripts/server.sh`, talks to them as any client
//! would, and looks at what a user sees: rows, errors, notices, statistics,
//! and the server's log.
//!
//! - [`Server`]: one server. It is removed when dropped, or else when the test
//!   process ends, in whatever way that happens: see [`Server::start`].
//! - [`Session`]: one connection. It remembers warnings, and fails the test if
//!   it got one that the test did not ask for, such as "resource was not
//!   closed".
//! - [`assert_sound`]: that a table is as any VACUUM must leave it.
//! - [`wait_until`] and [`wait_for`]: bounded waits for what another session
//!   can be seen doing. Nothing here sleeps and hopes.
//!
//! Tests of one file run at the same time on one server. Each has a database
//! of its own, so none disturbs what another measures.

pub mod tables;

mod server;
mod session;
mod soundness;

use std::time::{Duration, Instant};

pub use server::Server;
pub use session::{Failure, Running, Session, Warning};
pub use soundness::assert_sound;

/// How long a wait goes on before the test fails. Much longer than anything
/// takes: only a broken test or a broken server gets here.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a wait looks.
const INTERVAL: Duration = Duration::from_millis(2);

/// Waits until `look` finds something, and returns it.
///
/// # Panics
///
/// After a minute, with `what` was waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited {} s in vain: {what}", PATIENCE.as_secs());
        std::thread::sleep(INTERVAL);
    }
}

/// Waits until `look` says yes.
///
/// # Panics
///
/// As [`wait_for`].
#[track_caller]
pub fn wait_until(what: &str, mut look: impl FnMut() -> bool) {
    wait_for(what, || look().then_some(()));
}

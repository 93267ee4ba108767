//! The real VACUUM with any threshold, on a stock server.
//!
//! [`takeover`] puts us in the place that every VACUUM of a heap table passes
//! through, [`choice`] says whether it is ours to do, and [`engine`] does it. The
//! threshold comes from the command ([`option`]), the session, a [label](labels)
//! or the configuration ([`threshold`]).

mod choice;
mod engine;
mod failsafe;
pub mod labels;
mod memory;
mod option;
mod report;
mod scan_heap;
mod takeover;
pub mod threshold;
mod truncate;
mod vacuum_heap;
mod vacuum_indexes;

/// Called once, when the library is loaded, after the settings are registered.
pub fn install() {
    labels::register();
    option::register();
    takeover::take_over(choice::take);
}

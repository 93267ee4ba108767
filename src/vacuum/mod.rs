//! The real VACUUM with any threshold, on a stock server.
//!
//! [`takeover`] puts us in the place that every VACUUM of a heap table passes
//! through, [`choice`] says whether it is ours to do, and [`engine`] does it. The
//! threshold comes from the session or the configuration ([`threshold`]).

mod choice;
mod engine;
mod memory;
mod takeover;
pub mod threshold;

/// Called once, when the library is loaded, after the settings are registered.
pub fn install() {
    takeover::take_over(choice::take);
}

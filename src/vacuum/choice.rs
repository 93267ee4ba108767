//! Which code a VACUUM runs on: the server's own, or ours.
//!
//! With every setting at its default it is the server's. What the user gave for
//! this command or this table counts as set even where it equals the default; a
//! setting does not.

use super::engine;
use super::threshold::{InForce, Source};
use crate::server::table_am::Answer;
use crate::server::vacuum::request::VacuumRequest;
use crate::settings::{self, VacuumEngine};

/// Vacuums the relation if it is ours to do.
pub fn take(request: &VacuumRequest) -> Answer {
    let engine = settings::vacuum_engine();
    if engine == VacuumEngine::Never || !request.is_of_heap() {
        return Answer::HandOver;
    }
    let threshold = InForce::of(request.oid());
    let anything_set = is_set(threshold) || !settings::reading_is_default();
    if !is_ours(engine, anything_set, request.is_wraparound()) {
        return Answer::HandOver;
    }
    engine::vacuum(request, threshold);
    Answer::Done
}

fn is_set(threshold: InForce) -> bool {
    matches!(threshold.source, Source::Command | Source::Table)
        || threshold.threshold != settings::DEFAULT_THRESHOLD
}

/// An autovacuum that prevents wraparound is no time for experiments: unless told
/// `always`, it is the server's.
fn is_ours(engine: VacuumEngine, anything_set: bool, is_wraparound: bool) -> bool {
    match engine {
        VacuumEngine::Never => false,
        VacuumEngine::Auto => anything_set && !is_wraparound,
        VacuumEngine::Always => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_set_if_given_for_the_command_or_table_or_if_it_differs() {
        for (source, at_default) in [
            (Source::Command, true),
            (Source::Session, false),
            (Source::Table, true),
            (Source::Default, false),
        ] {
            assert_eq!(is_set(InForce { threshold: 32, source }), at_default, "32 from {}", source.name());
            for threshold in [0, 31, 33, i32::MAX] {
                assert!(is_set(InForce { threshold, source }), "{threshold} from {}", source.name());
            }
        }
    }

    #[test]
    fn auto_takes_what_something_is_set_for_but_no_wraparound() {
        assert!(is_ours(VacuumEngine::Auto, true, false));
        assert!(!is_ours(VacuumEngine::Auto, false, false));
        assert!(!is_ours(VacuumEngine::Auto, true, true));
        assert!(!is_ours(VacuumEngine::Auto, false, true));
    }

    #[test]
    fn always_takes_all_and_never_none() {
        for (set, wraparound) in [(false, false), (false, true), (true, false), (true, true)] {
            assert!(is_ours(VacuumEngine::Always, set, wraparound), "{set} {wraparound}");
            assert!(!is_ours(VacuumEngine::Never, set, wraparound), "{set} {wraparound}");
        }
    }
}

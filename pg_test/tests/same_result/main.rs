//! Our VACUUM does what the server's does, to the last byte.
//!
//! A server with a table for each case is stopped and copied twice. In one copy
//! the server's own code vacuums all the tables, in the other ours. Then
//! everything that VACUUM may change is compared: each page of each fork of
//! each relation, pg_class and other catalogs, cumulative statistics, WAL, and what
//! VERBOSE told. Both copies run the same statements in the same order, so that
//! transaction ids are the same too.
//!
//! - `corpus`: the cases.
//! - `run`: makes the tables, and vacuums a copy.
//! - `compare`: finds the differences.
//! - `page`: says where in a page one is.

mod compare;
mod corpus;
mod page;
mod run;

use std::thread;

use compare::{THRESHOLD_LINE, differences};
use corpus::{Case, all_cases};
use run::{Outcome, Side, build, vacuum_copy};

/// The server's own VACUUM; the library is not even loaded.
const SERVERS: Side = Side { name: "the server", settings: &[], changes: &[] };

/// Our VACUUM, with what the server's has compiled in.
const OURS: Side = Side {
    name: "vacuum_skip",
    settings: &[
        "shared_preload_libraries=vacuum_skip",
        "vacuum_skip.vacuum_engine=always",
        "vacuum_skip.skip_pages_threshold=32",
        "vacuum_skip.read_ahead=0",
    ],
    changes: &[],
};

/// Vacuums two copies of a server with the tables of `cases`.
fn vacuum_copies(cases: &[Case], sides: [&Side; 2]) -> [Outcome; 2] {
    let origin = build(cases);
    let vacuum = |side| vacuum_copy(&origin, side, cases);
    thread::scope(|scope| {
        let other = scope.spawn(|| vacuum(sides[1]));
        let one = vacuum(sides[0]);
        [one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
    })
}

/// Each case must be what it is meant to be.
fn assert_cases_are_real(outcome: &Outcome, cases: &[Case]) {
    let told = |case: &&Case| {
        let first_round = outcome.told[case.name].iter().filter(|line| line.starts_with("first round"));
        first_round.into_iter().any(|line| line.contains(case.tells))
    };
    for case in cases.iter().filter(|case| !told(case)) {
        println!("case {} does not tell \"{}\": {:#?}", case.name, case.tells, outcome.told[case.name]);
    }
    assert!(cases.iter().all(|case| told(&case)), "a case is not what it is meant to be");
    let passes = outcome.told.get("many_passes").into_iter().flatten();
    let passes = passes.filter_map(|line| line.split_once("index scans: ")?.1.parse::<u32>().ok()).max();
    assert!(passes >= Some(3), "index passes in case many_passes: {passes:?}");
}

/// How many vacuums of a table were told of, and how many thresholds.
fn vacuums_and_thresholds(outcome: &Outcome) -> (usize, usize) {
    let count = |what: &str| outcome.told.values().flatten().filter(|line| line.contains(what)).count();
    (count("finished vacuuming"), count(THRESHOLD_LINE))
}

fn shown(found: &[String]) -> String {
    format!("{} differences:\n  {}", found.len(), found.join("\n  "))
}

#[test]
fn our_vacuum_does_what_the_servers_does() {
    let cases = all_cases();
    let [servers, ours] = vacuum_copies(&cases, [&SERVERS, &OURS]);
    assert_cases_are_real(&servers, &cases);
    // Who has vacuumed is told.
    let (vacuums, thresholds) = vacuums_and_thresholds(&servers);
    assert!(vacuums > 2 * cases.len() && thresholds == 0, "{vacuums} vacuums, {thresholds} thresholds");
    assert_eq!(vacuums_and_thresholds(&ours), (vacuums, vacuums), "our vacuums and thresholds");
    let found = differences(&servers, &ours, &cases);
    assert!(found.is_empty(), "{}", shown(&found));
}

/// The server's VACUUM with other options. The last ones use more or fewer
/// transaction ids, which whatever comes after them tells.
const CHANGED: Side = Side {
    name: "the server with other options",
    settings: &[],
    changes: &[
        ("mixed_gaps", "VERBOSE", "VERBOSE, FREEZE"),
        ("all_frozen", "VERBOSE", "VERBOSE, DISABLE_PAGE_SKIPPING"),
        ("temporary", "VERBOSE", "VERBOSE, FREEZE"),
        ("index_cleanup_on", "INDEX_CLEANUP on", "INDEX_CLEANUP off"),
        ("all_visible", "VERBOSE", "VERBOSE, ANALYZE"),
        ("dead_tail", "VERBOSE", "VERBOSE, TRUNCATE off"),
    ],
};

/// What must be found then: how a difference begins, and what else it says.
const FOUND: [(&str, &str); 13] = [
    ("case mixed_gaps: told by", "aggressively vacuuming"),
    ("corpus: pg_class of mixed_gaps:", ""),
    (
        "corpus: mixed_gaps, main fork, block 0, byte ",
        ", tuple 20, byte 21 (t_infomask if of a table): 0x09 and 0x0b",
    ),
    ("corpus: mixed_gaps, vm fork, block 0, byte 24, the bits of blocks 0 to 3", ""),
    ("case all_frozen: told by", "aggressively vacuuming"),
    ("case temporary: told by", ""),
    ("temporary: temporary, main fork, block 0, byte ", "t_infomask"),
    ("temporary: temporary, vm fork, block 0, byte 24", ""),
    ("corpus: index_cleanup_on, index_cleanup_on_id_idx, main fork, block ", ""),
    ("corpus: pg_statistic of all_visible, column 1:", "the server: none"),
    ("corpus: pg_stat_all_tables of all_visible:", ""),
    ("corpus: dead_tail, main fork, 150 and 200 pages", ""),
    ("corpus: dead_tail, fsm fork, block ", "of the tree"),
];

#[test]
fn what_differs_is_found() {
    let unchanged = ["hot_chains"];
    let names = unchanged.into_iter().chain(CHANGED.changes.iter().map(|change| change.0));
    let all = all_cases();
    let cases: Vec<Case> =
        names.filter_map(|name| all.iter().find(|case| case.name == name).copied()).collect();
    assert_eq!(cases.len(), CHANGED.changes.len() + 1, "cases that are there");
    let [servers, changed] = vacuum_copies(&cases, [&SERVERS, &CHANGED]);
    let found = differences(&servers, &changed, &cases);
    for (start, rest) in FOUND {
        let one = found.iter().any(|difference| difference.starts_with(start) && difference.contains(rest));
        assert!(one, "not found: {start}{rest}; {}", shown(&found));
    }
    let wrong = found.iter().any(|difference| {
        difference.contains("hot_chains") || difference.starts_with("corpus: all_frozen, main")
    });
    assert!(!wrong, "found what is the same; {}", shown(&found));
}

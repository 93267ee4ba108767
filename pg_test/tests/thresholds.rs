//! VACUUM obeys the threshold, and at every threshold it leaves tables and
//! indexes that the server's checkers find nothing wrong with.
//!
//! Each threshold gets a copy of the files of the same tables. Eager scanning is
//! off: vacuum_skip_plan leaves it out.

use std::os::unix::fs::FileExt;

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{SHAPES, create_filled, make};
use vacuum_skip_pg_test::{Server, Session, assert_sound};

static SERVER: OnceCell<Server> = OnceCell::new();

const TABLES: [&str; 11] = [
    "uniform_low",
    "uniform_middle",
    "updated_in_place",
    "clustered_updates",
    "deletes",
    "all_frozen",
    "frozen_and_visible",
    "dead_tail",
    "with_index",
    "toasted",
    "no_page",
];

fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| {
        let server = Server::start(&[])?;
        let mut session = server.new_database("origin");
        create_filled(&mut session);
        for shape in SHAPES.iter().filter(|shape| TABLES.contains(&shape.name)) {
            make(&mut session, shape);
        }
        Ok(server)
    });
    server.unwrap_or_else(|error: String| panic!("{error}"))
}

/// The pages that the plan for `threshold` would scan.
fn planned(session: &mut Session, table: &str, threshold: i32) -> u64 {
    session.value(&format!("SELECT scanned_pages FROM vacuum_skip_plan('{table}', '{{{threshold}}}')"))
}

fn vacuum_at(threshold: i32) {
    let mut session = server().copy_database("origin", &format!("at_{threshold}"));
    session.run("SET vacuum_skip.vacuum_engine = always; SET vacuum_max_eager_freeze_failure_rate = 0");
    session.run(&format!("SET skip_pages_threshold = {threshold}"));
    for table in TABLES {
        // The second round finds the map that the first has left.
        for round in ["first", "second"] {
            let planned = planned(&mut session, table, threshold);
            let scanned = session.pages_vacuum_scans("PROCESS_TOAST off", table);
            assert_eq!(scanned, planned, "{table}, threshold {threshold}, {round} round: pages scanned");
            assert_sound(&mut session, table);
        }
    }
}

#[test]
fn vacuum_scans_what_the_plan_says_and_leaves_sound_tables() {
    for threshold in [0, 1, 2, 4, 8, 16, 32, 64, i32::MAX] {
        vacuum_at(threshold);
    }
}

// The checks themselves: they find what a VACUUM could do wrong.

#[test]
#[should_panic(expected = "pg_check_visible('t') of t found")]
fn a_map_that_says_too_much_is_found() {
    let mut session = server().new_database("wrong_map");
    session.run("CREATE TABLE t AS SELECT generate_series(1, 10) AS id");
    session.run("VACUUM t");
    server().evict(&mut session, "t");
    let map = server().file_of(&mut session, "t", "vm");
    let mut page = [0; 8192];
    map.read_exact_at(&mut page, 0).unwrap_or_else(|error| panic!("{error}"));
    session.run("DELETE FROM t WHERE id = 1");
    server().evict(&mut session, "t");
    map.write_all_at(&page, 0).unwrap_or_else(|error| panic!("{error}"));
    assert_sound(&mut session, "t");
}

#[test]
#[should_panic(expected = "lacks matching index tuple within index \"t_id_idx\"")]
fn an_index_without_a_row_is_found() {
    let mut session = server().new_database("wrong_index");
    session.run("CREATE TABLE t (id int); CREATE INDEX ON t (id)");
    let ready = "UPDATE pg_index SET indisready = $1 WHERE indexrelid = 't_id_idx'::regclass";
    session.run(&ready.replace("$1", "false"));
    session.run("INSERT INTO t VALUES (1)");
    session.run(&ready.replace("$1", "true"));
    assert_sound(&mut session, "t");
}

//! What a VACUUM of ours says when something goes wrong within it: what the server's
//! says, in every field, CONTEXT included. And what it tells on the way to who wants to
//! know everything.

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{create_filled, make_striped};
use vacuum_skip_pg_test::{Server, Session};

static SERVER: OnceCell<Server> = OnceCell::new();

fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| Server::start(&[]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

/// The server's code, and ours.
const ENGINES: [&str; 2] = ["never", "always"];

/// A session of each, whose streams do not read ahead, so that an error comes while the
/// block before the bad one is being worked on.
fn sessions(database: &str) -> [Session; 2] {
    ENGINES.map(|engine| {
        let mut session = server().connect(database);
        session.run(&format!("SET vacuum_skip.vacuum_engine = {engine}"));
        session.run("SET maintenance_io_concurrency = 0; SET io_combine_limit = 1");
        session
    })
}

/// The error that `sql` raises by the server's code and by ours, which must be the same
/// in every field.
#[track_caller]
fn assert_same_error(database: &str, sql: &str) -> String {
    let [servers, ours] = sessions(database).map(|mut session| {
        let error = session.simple_query(sql).expect_err(sql);
        session.take_warnings();
        let error = error.as_db_error().unwrap_or_else(|| panic!("{error}")).clone();
        session.run("SELECT 1");
        format!("{error:?}")
    });
    assert_eq!(ours, servers, "of: {sql}");
    ours
}

#[test]
fn a_broken_page_of_the_table() {
    let mut session = server().new_database("broken_heap");
    make_striped(&mut session, "t", 100);
    server().overwrite(&mut session, "t", 51, 12, &[0xff; 6]);
    let error = assert_same_error("broken_heap", "VACUUM (DISABLE_PAGE_SKIPPING) t");
    assert!(error.contains("while scanning block 50 of relation"), "{error}");
    server().assert_well();
}

#[test]
fn a_broken_page_of_an_index() {
    let mut session = server().new_database("broken_index");
    create_filled(&mut session);
    session.run(
        "CREATE TABLE t AS SELECT * FROM filled(2000); CREATE INDEX ON t USING hash (v);
         CREATE INDEX i ON t (id); DELETE FROM t WHERE id % 50 = 0",
    );
    server().overwrite(&mut session, "i", 2, 12, &[0xff; 6]);
    let error = assert_same_error("broken_index", "VACUUM t");
    assert!(error.contains("while vacuuming index \\\"i\\\" of relation \\\"public.t\\\""), "{error}");
    session.run_each("REINDEX INDEX i; VACUUM t");
    server().assert_well();
}

/// A table `t` of some pages that a BRIN index knows nothing of yet, so that VACUUM calls
/// the function `indexed`, which does `statement`.
fn with_function_in_index(database: &str, statement: &str) -> Session {
    let mut session = server().new_database(database);
    create_filled(&mut session);
    session.run("CREATE TABLE other (id int); CREATE TABLE t (id int, v int, filler text)");
    session.run(
        "CREATE FUNCTION indexed(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN id; END $$;
         CREATE INDEX ON t USING brin (indexed(id)) WITH (pages_per_range = 1);
         INSERT INTO t SELECT * FROM filled(100)",
    );
    session.run(&format!(
        "CREATE OR REPLACE FUNCTION indexed(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
         $$ BEGIN {statement}; RETURN id; END $$"
    ));
    session
}

#[test]
fn a_function_that_an_index_calls() {
    drop(with_function_in_index("function", "PERFORM 1 / 0"));
    let error = assert_same_error("function", "VACUUM t");
    assert!(error.contains("division by zero"), "{error}");
    assert!(error.contains("PL/pgSQL function public.indexed(integer) line 1 at PERFORM"), "{error}");
    assert!(error.contains("while cleaning up index \\\"t_indexed_idx\\\" of relation"), "{error}");
    server().assert_well();
}

#[test]
fn a_function_of_ours_that_an_index_calls() {
    drop(with_function_in_index(
        "functions_of_ours",
        "PERFORM public.vacuum_skip_plan('public.other', '{-5}')",
    ));
    let error = assert_same_error("functions_of_ours", "VACUUM t");
    assert!(error.contains("threshold -5 is out of range"), "{error}");
    server().assert_well();
}

#[test]
fn an_error_of_a_function_that_an_index_catches() {
    let caught = "BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END";
    let mut session = with_function_in_index("caught", caught);
    let lines = session.vacuum_verbose("SKIP_PAGES_THRESHOLD 4, PROCESS_TOAST off", "t, other");
    let thresholds: Vec<&String> =
        lines.iter().filter(|line| line.contains("threshold: 4 (command)")).collect();
    assert_eq!(thresholds.len(), 2, "both tables are vacuumed by the option: {lines:#?}");
    server().assert_well();
}

#[test]
fn our_errors_name_the_file_they_come_from() {
    let mut session = server().new_database("files");
    session.run("CREATE TABLE t ()");
    let error = session.simple_query("VACUUM (SKIP_PAGES_THRESHOLD -2) t").expect_err("out of range");
    let file = error.as_db_error().and_then(|error| error.file()).map(str::to_owned);
    assert_eq!(file.as_deref(), Some("process_utility.rs"));
}

/// All that is told to who asks for everything, but times and what is ours alone.
fn told(session: &mut Session, sql: &str) -> Vec<String> {
    session.run(sql);
    let about_time = ["avg read rate:", "system usage:", "buffer usage:", "WAL usage:"];
    let kept = |line: &String| {
        !about_time.iter().any(|what| line.contains(what)) && !line.contains("skip pages threshold:")
    };
    session.take_messages_in_full().into_iter().filter(kept).collect()
}

#[test]
fn debug_messages_and_their_contexts() {
    let mut session = server().new_database("debug");
    create_filled(&mut session);
    let [servers, ours] = sessions("debug").map(|mut session| {
        session.run(
            "CREATE TABLE t AS SELECT * FROM filled(4000); CREATE INDEX ON t (id);
             CREATE INDEX ON t USING hash (v); DELETE FROM t WHERE id % 9 = 0 OR id > 3000",
        );
        session.run("SET client_min_messages = debug2; SET maintenance_work_mem = '64kB'");
        let told = told(&mut session, "VACUUM t");
        session.run("DROP TABLE t");
        told
    });
    assert_eq!(ours, servers);
    let heap = servers.iter().position(|line| line.contains("dead item identifiers in"));
    let context = heap.and_then(|line| servers.get(line + 1));
    assert_eq!(
        context.map(String::as_str),
        Some("CONTEXT: while vacuuming relation \"public.t\""),
        "{servers:#?}"
    );
    assert!(servers.iter().any(|line| line.contains("table \"t\": truncated")), "{servers:#?}");
}

//! The way in: what loading the library does to a server besides what it is for.
//!
//! It stores a pointer in read-only memory, it stands in the way of every utility
//! command, and it keeps labels in the catalogs. None of that may be noticed by
//! who does not use it.

use std::path::Path;

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{make_striped, wait_for_lock};
use vacuum_skip_pg_test::{Server, Session};

static SERVER: OnceCell<Server> = OnceCell::new();

/// Sessions of this server load the library unless told otherwise.
fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| Server::start(&[]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

const WITHOUT: &str = "-c session_preload_libraries=";

/// How many bytes of the server's program, as it is mapped into the process of
/// `session`, can be written.
fn writable_bytes(session: &mut Session) -> usize {
    let maps: Vec<String> = session.rows("SELECT pg_read_file('/proc/self/maps')");
    let program = maps[0].lines().filter(|line| line.ends_with("/postgres"));
    let address = |text| usize::from_str_radix(text, 16).unwrap();
    let writable = program.filter(|line| line.split(' ').nth(1).unwrap().contains('w')).map(|line| {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        address(end) - address(start)
    });
    writable.sum()
}

#[test]
fn no_page_of_the_program_is_left_writable() {
    let mut without = server().connect_with("postgres", "postgres", WITHOUT);
    let before = writable_bytes(&mut without);
    assert!(before > 0, "the program's variables are not among its mappings");
    without.run("LOAD 'vacuum_skip'");
    assert_eq!(writable_bytes(&mut without), before, "after LOAD");
    without.run("LOAD 'vacuum_skip'");
    assert_eq!(writable_bytes(&mut without), before, "after another LOAD");
    assert_eq!(writable_bytes(&mut server().connect("postgres")), before, "with session_preload_libraries");
    let shared = Server::start(&["shared_preload_libraries=vacuum_skip", "session_preload_libraries="]);
    let shared = shared.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(writable_bytes(&mut shared.connect("postgres")), before, "with shared_preload_libraries");
    let log = shared.log();
    assert!(!log.contains("WARNING"), "the library warned when it was loaded: {log}");
}

/// The error that `sql` raises with the library and without, which must be the same
/// in every field: message, CONTEXT, position, and where in the server's source.
#[track_caller]
fn assert_same_error(database: &str, sql: &str) -> String {
    let [with, without] = ["", WITHOUT].map(|options| {
        let mut session = server().connect_with("postgres", database, options);
        let error = session.simple_query(sql).expect_err(sql);
        session.take_warnings();
        error.as_db_error().unwrap_or_else(|| panic!("{error}")).clone()
    });
    assert_eq!(with, without, "of: {sql}");
    format!("{with:?}")
}

#[test]
fn errors_of_commands_keep_all_their_fields() {
    let mut session = server().new_database("fields");
    session.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1), (1), (NULL)");
    assert_same_error("fields", "CREATE TABLE u (id int, other nonsense)");
    let error = assert_same_error("fields", "CREATE UNIQUE INDEX unique_id ON t (id)");
    assert!(error.contains("constraint: Some(\"unique_id\")"), "{error}");
    assert_same_error("fields", "ALTER TABLE t ALTER id SET NOT NULL");
    assert_same_error("fields", "DO $$ BEGIN PERFORM 1 / 0; END $$");
    assert_same_error("fields", "VACUUM (NONSENSE) t");
    assert_same_error("fields", "VACUUM (FULL, PARALLEL 2) t");
    assert_same_error("fields", "VACUUM missing");
}

#[test]
fn errors_of_the_servers_own_vacuum_keep_all_their_fields() {
    let mut session = server().new_database("broken");
    make_striped(&mut session, "t", 100);
    // So that the server says which block it was at, not how far ahead it read.
    session.run("ALTER DATABASE broken SET maintenance_io_concurrency = 0");
    session.run("ALTER DATABASE broken SET io_combine_limit = 1");
    server().overwrite(&mut session, "t", 51, 12, &[0xff; 6]);
    let error = assert_same_error("broken", "VACUUM (DISABLE_PAGE_SKIPPING) t");
    assert!(error.contains("while scanning block 50 of relation"), "{error}");
}

#[test]
fn other_extensions_see_the_command_as_it_was_given() {
    for libraries in ["vacuum_skip,pg_stat_statements", "pg_stat_statements,vacuum_skip"] {
        let preload = format!("shared_preload_libraries={libraries}");
        let server = Server::start(&[&preload, "session_preload_libraries=", "compute_query_id=on"]);
        let server = server.unwrap_or_else(|error| panic!("{libraries}: {error}"));
        let mut session = server.connect("postgres");
        session.run("CREATE EXTENSION pg_stat_statements; CREATE TABLE t ()");
        session.run("VACUUM (SKIP_PAGES_THRESHOLD 4) t");
        let failure = session.failure("VACUUM (SKIP_PAGES_THRESHOLD -2) t");
        assert_eq!(failure.code, "22023", "{libraries}: {failure}");
        let seen = session.rows("SELECT query, calls FROM pg_stat_statements WHERE query ILIKE 'vacuum%'");
        assert_eq!(seen, ["VACUUM (SKIP_PAGES_THRESHOLD 4) t|1"], "{libraries}");
        server.assert_well();
    }
}

#[test]
fn who_may_not_label_a_table_does_not_queue_for_it() {
    let mut holder = server().new_database("queue");
    holder.run("CREATE ROLE no_owner LOGIN; CREATE TABLE t ()");
    holder.run("BEGIN; LOCK t IN SHARE UPDATE EXCLUSIVE MODE");
    let mut stranger = server().connect_with("no_owner", "queue", "-c lock_timeout=1ms");
    let failure = stranger.failure("SELECT vacuum_skip_set_threshold('t', 4)");
    assert_eq!(failure.code, "42501", "{failure}");

    // The owner waits for a VACUUM, say, and finds out if the table is gone then.
    let owner = server().connect("queue");
    let (pid, waiting) = (owner.pid(), owner.start("SELECT vacuum_skip_set_threshold('t', 4)"));
    let mut observer = server().connect("queue");
    wait_for_lock(&mut observer, pid);
    holder.run("DROP TABLE t; COMMIT");
    let (mut owner, result) = waiting.finish();
    assert_eq!(
        result.map_err(|failure| failure.code),
        Err("42P01".to_owned()),
        "of a table that was dropped"
    );
    assert_eq!(owner.row("SELECT count(*) FROM pg_seclabel"), "0", "labels of a table that was dropped");
}

/// A database with two labelled tables, dumped by pg_dump in `format`.
fn dumped(database: &str, format: &str) -> std::path::PathBuf {
    let mut session = server().new_database(database);
    session.run(
        "CREATE TABLE t (id int); CREATE MATERIALIZED VIEW m AS SELECT 1 AS a; CREATE TABLE unlabelled ();
         SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold = 4';
         SELECT vacuum_skip_set_threshold('m', 5)",
    );
    let file = server().folder().join(format!("{database}.dump"));
    let path = file.to_str().unwrap();
    server().run_client("pg_dump", &["--format", format, "--file", path, database]);
    file
}

const LABELLED: &str = "SELECT * FROM vacuum_skip_tables ORDER BY rel::text";

#[test]
fn a_dump_that_psql_restores_has_the_labels() {
    // CREATE EXTENSION comes first and loads the library.
    let file = dumped("dumped", "plain");
    server().run_client("createdb", &["restored"]);
    let options = ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", file.to_str().unwrap()];
    server().run_client_with(WITHOUT, "psql", &[&options[..], &["restored"]].concat());
    assert_eq!(
        server().connect("restored").rows(LABELLED),
        ["m|5", "t|4"],
        "labels of the restored database"
    );
}

#[test]
fn a_dump_that_is_restored_in_parallel_has_the_labels() {
    let file: &Path = &dumped("dumped_parallel", "custom");
    server().run_client("createdb", &["restored_parallel"]);
    let options = ["--exit-on-error", "--jobs", "2", "--dbname", "restored_parallel", file.to_str().unwrap()];
    server().run_client("pg_restore", &options);
    let labels = server().connect("restored_parallel").rows(LABELLED);
    assert_eq!(labels, ["m|5", "t|4"], "labels of the restored database");
}

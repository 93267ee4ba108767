//! The way in: what loading the library does to a server besides what it is for.
//!
//! It stores a pointer in read-only memory and stands in the way of every utility
//! command. Neither may be noticed by who does not use it.

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::make_striped;
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

//! The way in: what loading the library does to a server besides what it is for.
//!
//! It stores a pointer in read-only memory and stands in the way of every VACUUM.
//! Neither may be noticed by who does not use it.

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

//! Settings that come from elsewhere than SET: the command line, roles and
//! databases, configuration files, and leaders of parallel workers.
//!
//! `skip_pages_threshold` and `vacuum_skip.skip_pages_threshold` are one
//! setting under two names. A name without a dot is unknown to the server until
//! the library is loaded, so for the short one it matters when that is:
//! shared_preload_libraries come before everything, session_preload_libraries
//! after the command line and after the settings of roles and databases.

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::{Server, Session, wait_until};

/// The library is loaded when a session begins.
static SESSION_PRELOAD: OnceCell<Server> = OnceCell::new();

/// The library is loaded when the server starts.
static SHARED_PRELOAD: OnceCell<Server> = OnceCell::new();

fn session_preload() -> &'static Server {
    let server =
        SESSION_PRELOAD.get_or_try_init(|| Server::start(&["session_preload_libraries=vacuum_skip"]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

fn shared_preload() -> &'static Server {
    let settings = ["shared_preload_libraries=vacuum_skip", "session_preload_libraries="];
    let server = SHARED_PRELOAD.get_or_try_init(|| Server::start(&settings));
    server.unwrap_or_else(|error| panic!("{error}"))
}

/// The value under both names.
fn both(session: &mut Session) -> [i32; 2] {
    [session.value("SHOW skip_pages_threshold"), session.value("SHOW vacuum_skip.skip_pages_threshold")]
}

/// SET by one name, RESET by the other, back and forth; RESET gives `reset`.
#[track_caller]
fn assert_reset_gives(session: &mut Session, reset: i32) {
    for (set, other) in [
        ("skip_pages_threshold", "vacuum_skip.skip_pages_threshold"),
        ("vacuum_skip.skip_pages_threshold", "skip_pages_threshold"),
    ] {
        for name in [set, other] {
            session.run(&format!("SET {set} = 11"));
            assert_eq!(both(session), [11, 11], "after SET {set} = 11");
            session.run(&format!("RESET {name}"));
            assert_eq!(both(session), [reset, reset], "after SET {set} = 11 and RESET {name}");
        }
    }
    session.run("SET skip_pages_threshold = 11; RESET ALL");
    assert_eq!(both(session), [reset, reset], "after SET and RESET ALL");
}

#[test]
fn the_full_name_is_known_on_the_command_line() {
    for server in [session_preload(), shared_preload()] {
        let mut session =
            server.connect_with("postgres", "postgres", "-c vacuum_skip.skip_pages_threshold=4");
        assert_eq!(both(&mut session), [4, 4], "with -c vacuum_skip.skip_pages_threshold=4");
        assert_reset_gives(&mut session, 4);
    }
}

#[test]
fn the_short_name_is_known_on_the_command_line_of_a_preloaded_server() {
    let mut session = shared_preload().connect_with("postgres", "postgres", "-c skip_pages_threshold=4");
    assert_eq!(both(&mut session), [4, 4], "with -c skip_pages_threshold=4");
    assert_reset_gives(&mut session, 4);
}

#[test]
fn the_short_name_is_unknown_on_the_command_line_otherwise() {
    let options = "-c skip_pages_threshold=4";
    let refused = session_preload().try_connect("postgres", "postgres", options);
    let failure = refused.err().map(|failure| (failure.code, failure.message));
    let expected =
        ("42704".to_owned(), "unrecognized configuration parameter \"skip_pages_threshold\"".to_owned());
    assert_eq!(failure, Some(expected), "with {options}");
}

#[test]
fn a_role_has_its_own_threshold_by_the_full_name() {
    for server in [session_preload(), shared_preload()] {
        let mut session = server.connect("postgres");
        session.run(
            "CREATE ROLE full_name LOGIN; ALTER ROLE full_name SET vacuum_skip.skip_pages_threshold = 5",
        );
        let mut session = server.connect_with("full_name", "postgres", "");
        assert_eq!(both(&mut session), [5, 5], "the threshold of a role");
        assert_reset_gives(&mut session, 5);
    }
}

#[test]
fn a_role_has_its_own_threshold_by_the_short_name_on_a_preloaded_server() {
    for (server, threshold) in [(shared_preload(), 5), (session_preload(), 32)] {
        let mut session = server.connect("postgres");
        session.run("CREATE ROLE short_name LOGIN; ALTER ROLE short_name SET skip_pages_threshold = 5");
        let mut session = server.connect_with("short_name", "postgres", "");
        // Where the library is not loaded yet, the server warns and goes on.
        let warnings = session.take_warnings();
        let messages: Vec<&str> = warnings.iter().map(|warning| &*warning.message).collect();
        let unknown = ["unrecognized configuration parameter \"skip_pages_threshold\""];
        let expected: &[&str] = if threshold == 5 { &[] } else { &unknown };
        assert_eq!(messages, expected, "warnings when a session begins");
        assert_eq!(both(&mut session), [threshold, threshold], "the threshold of a role");
        assert_reset_gives(&mut session, threshold);
    }
}

#[test]
fn a_database_has_its_own_threshold() {
    shared_preload().new_database("own").run("ALTER DATABASE own SET skip_pages_threshold = 6");
    let mut session = shared_preload().connect("own");
    assert_eq!(both(&mut session), [6, 6], "the threshold of a database");
    assert_reset_gives(&mut session, 6);
    let mut session =
        shared_preload().connect_with("postgres", "own", "-c vacuum_skip.skip_pages_threshold=7");
    assert_eq!(both(&mut session), [7, 7], "the command line counts more than the database");
    assert_reset_gives(&mut session, 7);
}

#[test]
fn a_function_sees_the_threshold_of_its_database() {
    let mut session = shared_preload().new_database("seen");
    session.run("CREATE TABLE t (); ALTER DATABASE seen SET skip_pages_threshold = 6");
    let threshold = "SELECT threshold FROM vacuum_skip_scan('t')";
    assert_eq!(session.row(threshold), "32", "in a session that began before");
    assert_eq!(shared_preload().connect("seen").row(threshold), "6", "in a session that began after");
}

/// Changes the server's configuration, and waits until `session` has heard.
#[track_caller]
fn configure(session: &mut Session, change: &str, expected: i32) {
    session.run(&format!("ALTER SYSTEM {change}"));
    session.run("SELECT pg_reload_conf()");
    wait_until("a session that has read the new configuration", || both(session) == [expected, expected]);
}

#[test]
fn a_reload_reaches_sessions_that_did_not_set() {
    for preload in ["session_preload_libraries=vacuum_skip", "shared_preload_libraries=vacuum_skip"] {
        let server = Server::start(&[preload]).unwrap_or_else(|error| panic!("{error}"));
        let [mut plain, mut short, mut full, mut undone] = [(); 4].map(|()| server.connect("postgres"));
        assert_eq!(both(&mut plain), [32, 32], "without configuration");
        short.run("SET skip_pages_threshold = 3");
        full.run("SET vacuum_skip.skip_pages_threshold = 4");
        undone.run("BEGIN; SET skip_pages_threshold = 5");

        configure(&mut plain, "SET vacuum_skip.skip_pages_threshold = 8", 8);
        assert_reset_gives(&mut plain, 8);
        assert_eq!(both(&mut server.connect("postgres")), [8, 8], "in a new session");
        assert_eq!(both(&mut short), [3, 3], "in a session that has SET the short name");
        assert_eq!(both(&mut full), [4, 4], "in a session that has SET the full name");
        assert_eq!(both(&mut undone), [5, 5], "in a transaction that has SET");
        undone.run("ROLLBACK");
        assert_eq!(both(&mut undone), [8, 8], "after ROLLBACK of the SET");
        assert_reset_gives(&mut short, 8);

        configure(&mut plain, "RESET vacuum_skip.skip_pages_threshold", 32);
        assert_reset_gives(&mut plain, 32);
        assert_eq!(both(&mut full), [4, 4], "in a session that has SET, after the line is gone");
        full.run("RESET skip_pages_threshold");
        assert_eq!(both(&mut full), [32, 32], "after RESET of the short name");
        assert_eq!(both(&mut short), [32, 32], "in the session that has RESET before");
        server.assert_well();
    }
}

#[test]
fn a_line_in_postgresql_conf_is_every_sessions_default() {
    let server = Server::start(&[]).unwrap_or_else(|error| panic!("{error}"));
    server.restart(&["vacuum_skip.skip_pages_threshold=8"]);
    let mut session = server.connect("postgres");
    assert_eq!(both(&mut session), [8, 8], "with a line in postgresql.conf");
    assert_reset_gives(&mut session, 8);
    let mut session = server.connect_with("postgres", "postgres", "-c vacuum_skip.skip_pages_threshold=4");
    assert_eq!(both(&mut session), [4, 4], "the command line counts more than the file");
    assert_reset_gives(&mut session, 4);
}

#[test]
fn the_short_name_is_refused_in_configuration_files() {
    let mut session = shared_preload().connect("postgres");
    let failure = session.failure("ALTER SYSTEM SET skip_pages_threshold = 8");
    assert_eq!(failure.code, "55P02", "{failure}");
    // A server whose files have it would not start without the library.
    assert_eq!(both(&mut session), [32, 32], "after a refused ALTER SYSTEM");
}

#[test]
fn the_short_name_is_refused_when_files_are_read_again() {
    let server = Server::start(&["shared_preload_libraries=vacuum_skip"]);
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let file = server.folder().join("data/postgresql.conf");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}skip_pages_threshold = 7\n")).unwrap();
    let mut session = server.connect("postgres");
    let error = "SELECT applied, error FROM pg_file_settings WHERE name = 'skip_pages_threshold'";
    assert_eq!(session.row(error), "f|setting could not be applied", "the line in the file");
    configure(&mut session, "SET vacuum_skip.skip_pages_threshold = 8", 8);

    // Nor does the line's end change anything.
    std::fs::write(&file, before).unwrap();
    configure(&mut session, "SET vacuum_skip.skip_pages_threshold = 9", 9);
    assert_reset_gives(&mut session, 9);
    server.assert_well();
}

#[test]
fn parallel_workers_have_their_leaders_threshold() {
    for server in [session_preload(), shared_preload()] {
        for name in ["skip_pages_threshold", "vacuum_skip.skip_pages_threshold"] {
            let mut session = server.connect("postgres");
            session.run(&format!("SET debug_parallel_query = on; SET {name} = 4"));
            let values = "SELECT current_setting('skip_pages_threshold'), \
                          current_setting('vacuum_skip.skip_pages_threshold')";
            let plan =
                session.rows(&format!("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) {values}"));
            assert!(plan.iter().any(|line| line.contains("Workers Launched: 1")), "no worker: {plan:?}");
            assert_eq!(session.row(values), "4|4", "in a worker, after SET {name} = 4");
            assert_eq!(both(&mut session), [4, 4], "in the leader afterwards");
            assert_reset_gives(&mut session, 32);
            session.run(&format!("BEGIN; SET LOCAL {name} = 9"));
            assert_eq!(session.row(values), "9|9", "in a worker, after SET LOCAL {name} = 9");
            session.run("ROLLBACK");
            assert_eq!(session.row(values), "32|32", "in a worker, after ROLLBACK");
        }
    }
}

#[test]
fn functions_run_in_the_leader_of_a_parallel_query() {
    let mut session = session_preload().new_database("leader");
    session.run("CREATE TABLE t (); SET debug_parallel_query = regress");
    session.run("SET skip_pages_threshold = 4");
    let threshold = session.row("SELECT threshold, rel_pages FROM vacuum_skip_scan('t')");
    assert_eq!(threshold, "4|0", "threshold, and pages of an empty table, where queries are made parallel");
}

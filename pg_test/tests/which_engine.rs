//! Which code a VACUUM runs on, and with which threshold.
//!
//! Ours says so at the end of what VERBOSE tells: `skip pages threshold: 4
//! (command), ...`, with where the threshold came from. The server's own does not.

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::{Server, Session, wait_until};

static SERVER: OnceCell<Server> = OnceCell::new();

/// Sessions of this server load the library unless told otherwise.
fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| Server::start(&[]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

const LABEL: &str = "skip pages threshold: ";
const NO_OPTION: &str = "SKIP_DATABASE_STATS";

/// The thresholds, and their sources, of the tables that `VACUUM (options) tables`
/// vacuums by our code.
#[track_caller]
fn ours(session: &mut Session, options: &str, tables: &str) -> Vec<String> {
    let lines = session.vacuum_verbose(options, tables);
    let finished = lines.iter().any(|line| line.starts_with("finished vacuuming"));
    assert!(finished, "VACUUM ({options}) {tables} tells nothing: {lines:?}");
    let thresholds = lines.iter().filter_map(|line| line.strip_prefix(LABEL));
    thresholds.map(|rest| rest.split(',').next().unwrap().to_owned()).collect()
}

/// A database with a table `t` that has no TOAST table.
fn database(name: &str) -> Session {
    let mut session = server().new_database(name);
    session.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
    session
}

const SERVERS: [&str; 0] = [];

#[test]
fn with_nothing_set_it_is_the_servers() {
    let mut session = database("defaults");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), SERVERS, "with every setting at its default");
    session.run("SET skip_pages_threshold = 32");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), SERVERS, "with SET to the default");
    session.run("SET skip_pages_threshold = 4; RESET vacuum_skip.skip_pages_threshold");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), SERVERS, "after RESET");
    session.run("SELECT vacuum_skip_set_threshold('t', 4), vacuum_skip_set_threshold('t', NULL)");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), SERVERS, "after the label is removed");
    session.run("SET vacuum_skip.vacuum_engine = always");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), ["32 (default)"], "with always");
}

#[test]
fn any_setting_away_from_its_default_makes_it_ours() {
    let mut session = database("settings");
    for (setting, expected) in [
        ("skip_pages_threshold = 4", "4 (session)"),
        ("vacuum_skip.skip_pages_threshold = 0", "0 (session)"),
        ("vacuum_skip.read_mode = sync", "32 (default)"),
        ("vacuum_skip.read_ahead = 0", "32 (default)"),
        ("vacuum_skip.vacuum_engine = always", "32 (default)"),
    ] {
        session.run(&format!("SET {setting}"));
        assert_eq!(ours(&mut session, NO_OPTION, "t"), [expected], "with SET {setting}");
        session.run("RESET ALL");
    }
    session.run("SET skip_pages_threshold = 4; SET vacuum_skip.vacuum_engine = never");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), SERVERS, "with never");
}

#[test]
fn the_option_counts_more_than_the_session_and_that_more_than_the_label() {
    let mut session = database("sources");
    session.run("SELECT vacuum_skip_set_threshold('t', 32)");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), ["32 (table)"], "with a label");
    session.run("SET skip_pages_threshold = 5");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), ["5 (session)"], "with a label and SET");
    let option = "SKIP_PAGES_THRESHOLD 32";
    assert_eq!(ours(&mut session, option, "t"), ["32 (command)"], "with a label, SET and the option");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), ["5 (session)"], "in the next command");
    session.run("SET vacuum_skip.vacuum_engine = never");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), SERVERS, "with a label, SET, and never");
}

#[test]
fn the_option_of_a_command_that_fails_ends_with_it() {
    let mut session = database("failed");
    let threshold = "SELECT threshold || ' ' || source FROM vacuum_skip_threshold('t')";
    session.run("CREATE TABLE seen (threshold text)");
    session.run(&format!(
        "DO $$ BEGIN
           BEGIN EXECUTE 'VACUUM (SKIP_PAGES_THRESHOLD 4) t'; EXCEPTION WHEN active_sql_transaction THEN NULL; END;
           INSERT INTO seen {threshold};
         END $$"
    ));
    assert_eq!(session.rows("TABLE seen"), ["32 default"], "in the same transaction");
    session.failure("VACUUM (SKIP_PAGES_THRESHOLD 4) missing");
    assert_eq!(session.row(threshold), "32 default", "in the next one");
}

#[test]
fn every_table_of_a_command_has_its_option_or_its_own_label() {
    let mut session = database("several");
    session.run(
        "CREATE TABLE u (id int); CREATE TABLE toasted (v text);
         CREATE TABLE parent (id int) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parent FOR VALUES FROM (0) TO (10);
         CREATE TABLE high PARTITION OF parent FOR VALUES FROM (10) TO (20);
         SELECT vacuum_skip_set_threshold('u', 6), vacuum_skip_set_threshold('high', 7),
                vacuum_skip_set_threshold('toasted', 8)",
    );
    let option = "SKIP_PAGES_THRESHOLD 4";
    assert_eq!(ours(&mut session, option, "t, u"), ["4 (command)"; 2], "with the option");
    assert_eq!(ours(&mut session, option, "parent"), ["4 (command)"; 2], "partitions with the option");
    assert_eq!(ours(&mut session, option, "toasted"), ["4 (command)"; 2], "a table and its TOAST table");
    assert_eq!(ours(&mut session, NO_OPTION, "t, u"), ["6 (table)"], "of which one has a label");
    assert_eq!(
        ours(&mut session, NO_OPTION, "parent"),
        ["7 (table)"],
        "partitions, of which one has a label"
    );
    assert_eq!(
        ours(&mut session, NO_OPTION, "toasted"),
        ["8 (table)"; 2],
        "a table with a label and its TOAST"
    );
    session.run("SELECT vacuum_skip_set_threshold(reltoastrelid, 9) FROM pg_class WHERE relname = 'toasted'");
    assert_eq!(ours(&mut session, NO_OPTION, "toasted"), ["8 (table)", "9 (table)"], "both with a label");
}

#[test]
fn a_prepared_vacuum_has_its_option_every_time() {
    let mut session = database("prepared");
    let vacuum = session.prepare("VACUUM (VERBOSE, SKIP_PAGES_THRESHOLD 4) t").unwrap();
    for execution in 1..=3 {
        session.take_lines();
        session.execute(&vacuum, &[]).unwrap();
        let lines = session.take_lines();
        assert!(
            lines.iter().any(|line| line.starts_with("skip pages threshold: 4 (command)")),
            "{execution}"
        );
    }
}

#[test]
fn load_is_for_one_session() {
    let mut session = database("load");
    session.run("SELECT vacuum_skip_set_threshold('t', 4)");
    let without = "-c session_preload_libraries=";
    let mut loader = server().connect_with("postgres", "load", without);
    let mut other = server().connect_with("postgres", "load", without);
    assert_eq!(ours(&mut loader, NO_OPTION, "t"), SERVERS, "without the library");
    loader.run("LOAD 'vacuum_skip'; SET vacuum_skip.vacuum_engine = always");
    assert_eq!(ours(&mut loader, NO_OPTION, "t"), ["4 (table)"], "after LOAD");
    assert_eq!(ours(&mut other, NO_OPTION, "t"), SERVERS, "in another session without the library");
    loader.run("DROP EXTENSION vacuum_skip");
    assert_eq!(ours(&mut loader, NO_OPTION, "t"), ["4 (table)"], "after DROP EXTENSION");
}

#[test]
fn always_is_for_one_session() {
    let mut session = database("always");
    session.run("SET vacuum_skip.vacuum_engine = always");
    assert_eq!(ours(&mut session, NO_OPTION, "t"), ["32 (default)"], "with always");
    let mut other = server().connect("always");
    assert_eq!(ours(&mut other, NO_OPTION, "t"), SERVERS, "in another session");
}

#[test]
fn what_a_client_or_a_database_asks_for_makes_it_ours() {
    let mut session = database("asked");
    session.run("SELECT vacuum_skip_set_threshold('t', 4)");
    session.run("CREATE TABLE u (id int); ALTER DATABASE asked SET vacuum_skip.skip_pages_threshold = 6");
    let mut session = server().connect("asked");
    let expected = ["4 (table)", "6 (default)"];
    assert_eq!(ours(&mut session, NO_OPTION, "t, u"), expected, "with a threshold of the database");
    // As vacuumdb with PGOPTIONS.
    let mut session = server().connect_with("postgres", "asked", "-c vacuum_skip.skip_pages_threshold=7");
    assert_eq!(ours(&mut session, NO_OPTION, "t, u"), ["7 (session)"; 2], "with connection options");
}

/// A server with autovacuum on, in which `labelled` of database `postgres`, with the
/// label 4, and `plain` have just become worth an autovacuum, which has happened.
fn after_autovacuum(settings: &[&str]) -> (Server, Session) {
    let on = ["autovacuum=on", "autovacuum_naptime=1s", "log_autovacuum_min_duration=0"];
    let server = Server::start(&[&on, settings].concat()).unwrap_or_else(|error| panic!("{error}"));
    let mut session = server.connect("postgres");
    session.run("CREATE EXTENSION vacuum_skip");
    for table in ["labelled", "plain"] {
        session.run(&format!("CREATE TABLE {table} (id int) WITH (autovacuum_vacuum_threshold = 1)"));
    }
    session.run("SELECT vacuum_skip_set_threshold('labelled', 4)");
    for table in ["labelled", "plain"] {
        session.run(&format!("INSERT INTO {table} SELECT generate_series(1, 1000); DELETE FROM {table}"));
    }
    for table in ["labelled", "plain"] {
        let line = format!("automatic vacuum of table \"postgres.public.{table}\"");
        wait_until(&line, || server.log().contains(&line));
    }
    (server, session)
}

#[test]
fn autovacuum_obeys_labels_on_a_preloaded_server() {
    let preload = ["shared_preload_libraries=vacuum_skip", "session_preload_libraries="];
    let (server, mut session) = after_autovacuum(&preload);
    let log = server.log();
    assert!(log.contains("skip pages threshold: 4 (table)"), "no autovacuum by the label: {log}");
    assert!(!log.contains("skip pages threshold: 32"), "an autovacuum with nothing set is ours: {log}");

    // and the configuration, without a restart
    session.run("ALTER SYSTEM SET vacuum_skip.skip_pages_threshold = 6");
    session
        .run("SELECT pg_reload_conf(); INSERT INTO plain SELECT generate_series(1, 1000); DELETE FROM plain");
    wait_until("an autovacuum by the configuration", || {
        server.log().contains("skip pages threshold: 6 (default)")
    });
    server.assert_well();
}

#[test]
fn autovacuum_is_left_alone_where_sessions_load_the_library() {
    let (server, _session) = after_autovacuum(&["vacuum_skip.vacuum_engine=always"]);
    let log = server.log();
    assert!(!log.contains("skip pages threshold"), "an autovacuum is ours: {log}");
    server.assert_well();
}

#[test]
fn an_autovacuum_against_wraparound_is_the_servers_unless_always() {
    for (engine, is_ours) in [("auto", false), ("always", true)] {
        let settings = [
            "shared_preload_libraries=vacuum_skip",
            "session_preload_libraries=",
            "autovacuum=on",
            "autovacuum_freeze_max_age=100000",
            "autovacuum_naptime=1s",
            "log_autovacuum_min_duration=0",
            &format!("vacuum_skip.vacuum_engine={engine}"),
        ];
        let server = Server::start(&settings).unwrap_or_else(|error| panic!("{error}"));
        let mut session = server.connect("postgres");
        session.run("CREATE EXTENSION vacuum_skip; CREATE TABLE t AS SELECT 1 AS id");
        session.run("SELECT vacuum_skip_set_threshold('t', 4)");
        // It gets old.
        session.run(
            "DO $$ BEGIN
               FOR i IN 1 .. 101000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
             END $$",
        );
        let line = "to prevent wraparound of table \"postgres.public.t\"";
        wait_until(line, || server.log().contains(line));
        let log = server.log();
        assert_eq!(log.contains("skip pages threshold: 4 (table)"), is_ours, "with {engine}: {log}");
        server.assert_well();
    }
}

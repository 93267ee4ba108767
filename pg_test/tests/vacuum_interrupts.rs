//! A VACUUM that is disturbed in each of its phases: cancelled, terminated, waited for
//! by DDL. Whatever happens to the server's VACUUM must happen to ours, and what a
//! VACUUM that was ended leaves behind must be sound.

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::wait_for_lock;
use vacuum_skip_pg_test::{Failure, Running, Server, Session, assert_sound, wait_until};

static SERVER: OnceCell<Server> = OnceCell::new();

fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| Server::start(&[]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

/// As pg_stat_progress_vacuum calls them.
const PHASES: [&str; 5] =
    ["scanning heap", "vacuuming indexes", "vacuuming heap", "cleaning up indexes", "truncating heap"];

/// The server's code, and ours.
const ENGINES: [&str; 2] = ["never", "always"];

/// Dead rows on every page and in both indexes, and nothing but dead rows at the end.
const TABLE: &str = "
    CREATE TABLE t (id int, words text[], filler text) WITH (autovacuum_enabled = off);
    INSERT INTO t SELECT i, ARRAY[i::text, (i + 1)::text], repeat('x', 100) FROM generate_series(1, 12000) AS i;
    CREATE INDEX ON t (id);
    CREATE INDEX ON t USING gin (words);
    DELETE FROM t WHERE id % 10 = 0 OR id > 9000";

/// Slow enough to be met in each phase.
const SLOW: &str = "SET vacuum_cost_delay = 5; SET vacuum_cost_limit = 2; SET vacuum_cost_page_dirty = 1";

/// A VACUUM that is in one of its phases.
struct Vacuum {
    running: Running,
    pid: i32,
    observer: Session,
    /// Has a lock that keeps a VACUUM from truncating, and nothing else.
    holder: Session,
}

fn vacuum_in(database: &str, engine: &str, phase: &str) -> Vacuum {
    let met = (0..10).find_map(|_| try_vacuum_in(database, engine, phase));
    met.unwrap_or_else(|| panic!("ten VACUUMs of {engine} were never seen {phase}"))
}

/// None if it was over before it was seen in `phase`, as may be where others are busy.
fn try_vacuum_in(database: &str, engine: &str, phase: &str) -> Option<Vacuum> {
    let mut observer = server().connect(database);
    observer.run("DROP TABLE IF EXISTS t");
    observer.run(TABLE);
    let mut holder = server().connect(database);
    if phase == "truncating heap" {
        holder.run("BEGIN");
        holder.run("SELECT FROM t LIMIT 1");
    }
    let mut session = server().connect(database);
    session.run(SLOW);
    session.run(&format!("SET vacuum_skip.vacuum_engine = {engine}"));
    let pid = session.pid();
    let running = session.start("VACUUM (VERBOSE) t");
    let there = format!(
        "SELECT count(*) FROM pg_stat_progress_vacuum WHERE pid = {pid} AND phase = '{phase}'
         AND (phase = 'truncating heap' OR heap_blks_scanned > 0)"
    );
    let mut seen = false;
    wait_until(phase, || {
        seen = observer.row(&there) == "1";
        seen || running.is_finished()
    });
    seen.then_some(Vacuum { running, pid, observer, holder })
}

/// Ends a VACUUM in `phase` by `function`; what it says, and a session of the database.
fn ended(database: &str, engine: &str, phase: &str, function: &str) -> (Failure, Session) {
    let Vacuum { running, pid, mut observer, holder } = vacuum_in(database, engine, phase);
    observer.run(&format!("SELECT {function}({pid})"));
    let (mut session, result) = running.finish();
    session.take_messages_in_full();
    drop(holder);
    let failure = result.expect_err("the VACUUM must have been ended");
    if function == "pg_cancel_backend" {
        assert_eq!(session.row("SELECT 1"), "1", "the session goes on");
    }
    let rows = format!("SELECT count(*) FROM pg_stat_progress_vacuum WHERE pid = {pid}");
    assert_eq!(observer.row(&rows), "0", "progress rows afterwards");
    wait_until("no locks", || {
        observer.row(&format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND locktype = 'relation'"))
            == "0"
    });
    (failure, observer)
}

/// Where in the table it was is a matter of time.
fn without_numbers(failure: Failure) -> Failure {
    let context = failure.context.replace(|character: char| character.is_ascii_digit(), "");
    Failure { context, ..failure }
}

/// Ends both VACUUMs in each phase, and has ours begin anew.
fn both_ended_alike(database: &str, function: &str) {
    drop(server().new_database(database));
    for phase in PHASES {
        let failures = ENGINES.map(|engine| {
            let (failure, mut observer) = ended(database, engine, phase, function);
            assert_sound(&mut observer, "t");
            observer.run("SET vacuum_skip.vacuum_engine = always");
            observer.run("VACUUM t");
            assert_sound(&mut observer, "t");
            assert_eq!(observer.row("SELECT count(*) FROM t"), "8100", "rows after {phase} of {engine}");
            failure
        });
        // Whether the last words of a process arrive before the connection is closed is
        // a matter of luck.
        if function == "pg_cancel_backend" {
            let [servers, ours] = failures.map(without_numbers);
            assert!(servers.context.contains("relation \"public.t\""), "{servers}");
            assert_eq!(servers, ours, "{function} while {phase}");
        }
    }
}

#[test]
fn a_vacuum_can_be_cancelled_in_each_phase() {
    both_ended_alike("cancelled", "pg_cancel_backend");
}

#[test]
fn a_vacuum_can_be_terminated_in_each_phase() {
    both_ended_alike("terminated", "pg_terminate_backend");
}

/// DDL waits for the VACUUM to end, or gives up; the VACUUM does not care. False if the
/// VACUUM was over before, or had nothing to do.
fn waits_while(database: &str, engine: &str, phase: &str, ddl: &str, after: &str) -> bool {
    let Vacuum { running, mut observer, .. } = vacuum_in(database, engine, phase);
    let mut impatient = server().connect(database);
    impatient.run("SET lock_timeout = '20ms'");
    match impatient.try_rows(ddl) {
        Err(failure) => assert_eq!(failure.code, "55P03", "{ddl} while {phase} of {engine}: {failure}"),
        Ok(_) => return false,
    }

    let patient = server().connect(database);
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND wait_event_type = 'Lock'",
        patient.pid()
    );
    let waiting = patient.start(ddl);
    let mut seen = false;
    wait_until("DDL that waits, or has not had to", || {
        seen = observer.row(&waits) == "1";
        seen || waiting.is_finished()
    });
    let (mut session, result) = running.finish();
    result.unwrap_or_else(|error| panic!("VACUUM beside {ddl}, {phase} of {engine}: {error}"));
    let told = session.take_lines().join("\n");
    // A transaction of another test, that ran when it began, may have kept it from its work.
    let worked = told.contains("tuples: 3900 removed");
    assert!(!worked || told.contains("index scans: 1"), "{phase} of {engine}: {told}");
    let (mut patient, result) = waiting.finish();
    result.unwrap_or_else(|error| panic!("{ddl} while {phase} of {engine}: {error}"));
    assert_eq!(patient.row(after), "t", "after {ddl} while {phase} of {engine}");
    seen && worked
}

fn waits_for_vacuum(database: &str, ddl: &str, after: &str) {
    drop(server().new_database(database));
    for phase in &PHASES[..4] {
        for engine in ENGINES {
            let waited = (0..10).any(|_| waits_while(database, engine, phase, ddl, after));
            assert!(waited, "in ten VACUUMs, {ddl} never came while {phase} of {engine}");
        }
    }
}

#[test]
fn a_drop_waits_for_the_vacuum() {
    waits_for_vacuum("dropped", "DROP TABLE t", "SELECT to_regclass('t') IS NULL");
}

#[test]
fn a_truncate_waits_for_the_vacuum() {
    waits_for_vacuum("truncated", "TRUNCATE t", "SELECT count(*) = 0 FROM t");
}

#[test]
fn an_alter_waits_for_the_vacuum() {
    waits_for_vacuum("altered", "ALTER TABLE t ADD COLUMN more int", "SELECT count(more) = 0 FROM t");
}

/// What a VACUUM tells of its truncation beside DDL that waits, and how long the table is
/// then. Somebody else has a lock on it, and gives it up in time or not.
fn truncation_beside_ddl(database: &str, in_time: bool) -> [Vec<String>; 2] {
    drop(server().new_database(database));
    ENGINES.map(|engine| {
        let Vacuum { running, mut observer, mut holder, .. } = vacuum_in(database, engine, "truncating heap");
        let patient = server().connect(database);
        let pid = patient.pid();
        let waiting = patient.start("ALTER TABLE t ADD COLUMN more int");
        wait_for_lock(&mut observer, pid);
        if in_time {
            holder.run("COMMIT");
        }
        let (mut session, result) = running.finish();
        result.unwrap_or_else(|error| panic!("{engine}: {error}"));
        drop(holder);
        let (_, result) = waiting.finish();
        result.unwrap_or_else(|error| panic!("DDL beside {engine}: {error}"));
        assert_sound(&mut observer, "t");
        let about = |line: &String| line.contains("truncat") || line.starts_with("pages: ");
        let mut told: Vec<String> = session.take_lines().into_iter().filter(about).collect();
        told.push(observer.row("SELECT pg_relation_size('t') / 8192 || ' pages are there'"));
        told
    })
}

#[test]
fn a_vacuum_truncates_ahead_of_ddl_that_waits_for_it() {
    let told = truncation_beside_ddl("ahead", true);
    assert_eq!(told[0], told[1]);
    assert!(told[0][0].starts_with("table \"t\": truncated "), "{:?}", told[0]);
}

#[test]
fn a_vacuum_gives_up_a_truncation_that_it_gets_no_lock_for() {
    let told = truncation_beside_ddl("behind", false);
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0][0], "\"t\": stopping truncate due to conflicting lock request");
    assert!(told[0][1].starts_with("pages: 0 removed"), "{:?}", told[0]);
}

#[test]
fn an_autovacuum_gives_way_to_ddl() {
    let server = Server::start(&[
        "shared_preload_libraries=vacuum_skip",
        "vacuum_skip.vacuum_engine=always",
        "autovacuum=on",
        "autovacuum_naptime=1s",
        "deadlock_timeout=50ms",
    ]);
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let mut session = server.connect("postgres");
    session.run(TABLE);
    session.run(
        "ALTER TABLE t SET (autovacuum_enabled, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)",
    );
    wait_until("autovacuum", || {
        session.row("SELECT count(*) FROM pg_stat_progress_vacuum WHERE relid = 't'::regclass AND heap_blks_scanned > 0") == "1"
    });
    session.run("ALTER TABLE t ADD COLUMN more int");
    wait_until("what the log says of it", || server.log().contains("canceling autovacuum task"));
    let log = server.log();
    let context = log.lines().skip_while(|line| !line.contains("canceling autovacuum task")).take(4);
    let context = context.collect::<Vec<_>>().join("\n");
    assert!(context.contains("while scanning block"), "{context}");
    assert!(context.contains("automatic vacuum of table \"postgres.public.t\""), "{context}");
}

//! Scans beside everything else: cancels, timeouts, errors in subtransactions,
//! DDL, vacuums and updates of other sessions, cursors closed early.
//!
//! Whatever happens, the session goes on, nothing it held is left behind, and
//! no warning about leaked resources appears (each [`Session`] fails its test
//! for a warning).

use std::fs;
use std::time::Instant;

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{make_slow, make_striped, wait_for_lock, wait_for_scan};
use vacuum_skip_pg_test::{Server, Session, wait_until};

static SERVER: OnceCell<Server> = OnceCell::new();

fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| Server::start(&[]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

/// Each function on table `t`, once for each `i`.
const CALLS: [&str; 5] = [
    "vacuum_skip_scan('t', 1 + i % 40)",
    "vacuum_skip_plan('t', ARRAY[1 + i % 40, 3])",
    "vacuum_skip_ranges('t', 1 + i % 40)",
    "vacuum_skip_map('t', 1 + i % 40)",
    "vacuum_skip_gaps(CASE WHEN i > 0 THEN 't'::regclass END)",
];

/// The ways a scan reads.
const WAYS: [&str; 3] = [
    "SET vacuum_skip.read_mode = stream",
    "SET vacuum_skip.read_mode = sync",
    "SET vacuum_skip.read_mode = stream; SET vacuum_skip.read_ahead = 0",
];

fn progress_rows(observer: &mut Session, pid: i32) -> u32 {
    observer.value(&format!("SELECT count(*) FROM pg_stat_progress_vacuum WHERE pid = {pid}"))
}

#[test]
fn a_scan_is_seen_in_pg_stat_progress_vacuum() {
    let (mut observer, mut holder) = (server().new_database("progress"), server().connect("progress"));
    make_slow(&mut holder, &mut observer, "slow");
    for way in WAYS {
        let mut session = server().connect("progress");
        session.run(way);
        let pid = session.pid();
        let scan = session.start("SELECT rel_pages FROM vacuum_skip_scan('slow')");
        wait_for_scan(&mut observer, pid);
        let mut seen = Vec::new();
        while !scan.is_finished() {
            seen.extend(observer.rows(&format!(
                "SELECT datname || ' ' || relid::regclass || ': ' || phase || ' of ' || heap_blks_total,
                        heap_blks_scanned FROM pg_stat_progress_vacuum WHERE pid = {pid}"
            )));
        }
        let (_session, pages) = scan.finish();
        let what = format!("progress slow: scanning heap of {}|", pages.unwrap_or_else(|e| panic!("{e}"))[0]);
        let blocks = seen.iter().map(|row| row.strip_prefix(&what).and_then(|n| n.parse::<u32>().ok()));
        let blocks: Vec<u32> =
            blocks.collect::<Option<_>>().unwrap_or_else(|| panic!("{what} … but {seen:?}"));
        let mut distinct = blocks.clone();
        distinct.dedup();
        assert!(blocks.is_sorted() && distinct.len() >= 10, "{way}: heap_blks_scanned over time: {blocks:?}");
        assert_eq!(progress_rows(&mut observer, pid), 0, "{way}: progress rows after the scan");
    }
}

#[test]
fn a_scan_holds_access_share_and_nothing_else() {
    let (mut observer, mut holder) = (server().new_database("locks"), server().connect("locks"));
    make_slow(&mut holder, &mut observer, "slow");
    let session = server().connect("locks");
    let pid = session.pid();
    let scan = session.start("SELECT FROM vacuum_skip_scan('slow')");
    wait_for_scan(&mut observer, pid);
    let locks = format!(
        "SELECT relation::regclass, mode, granted FROM pg_locks WHERE pid = {pid} AND locktype = 'relation'"
    );
    let held = observer.rows(&locks);
    assert!(!scan.is_finished(), "the scan ended too early to be looked at");
    assert_eq!(held, ["slow|AccessShareLock|t"], "locks of relations during a scan");
    let (mut session, _) = scan.finish();
    session.run("BEGIN; SELECT FROM vacuum_skip_scan('slow', 2147483647)");
    assert_eq!(observer.rows(&locks), [""; 0], "locks after a scan, in its transaction");
    session.run("COMMIT");
}

#[test]
fn a_cancelled_session_goes_on() {
    let (mut observer, mut holder) = (server().new_database("cancel"), server().connect("cancel"));
    make_striped(&mut observer, "t", 300);
    make_slow(&mut holder, &mut observer, "slow");
    let mut session = server().connect("cancel");
    let pid = session.pid();
    let started = Instant::now();
    session.run("SELECT FROM vacuum_skip_scan('slow')");
    let whole_scan = started.elapsed();
    for way in WAYS.iter().cycle().take(6) {
        session.run(way);
        let scan = session.start("SELECT FROM vacuum_skip_scan('slow')");
        wait_for_scan(&mut observer, pid);
        let cancelled = Instant::now();
        observer.run(&format!("SELECT pg_cancel_backend({pid})"));
        let (back, result) = scan.finish();
        session = back;
        let answered = cancelled.elapsed();
        assert!(answered < whole_scan / 2, "{way}: cancel took {answered:?}, a whole scan {whole_scan:?}");
        let code = result.map_err(|failure| failure.code);
        assert_eq!(code, Err("57014".to_owned()), "{way}: a cancelled scan");
        assert_eq!(progress_rows(&mut observer, pid), 0, "{way}: progress rows after a cancel");
        let counts =
            session.row("SELECT rel_pages, scanned_pages, live_tuples FROM vacuum_skip_scan('t', 1)");
        assert_eq!(counts, "300|150|150", "{way}: a scan after a cancel");
    }
}

#[test]
fn a_scan_heeds_statement_timeout() {
    let (mut observer, mut holder) = (server().new_database("timeout"), server().connect("timeout"));
    make_slow(&mut holder, &mut observer, "slow");
    for way in WAYS {
        observer.run(way);
        observer.run("SET statement_timeout = 100");
        let failure = observer.failure("SELECT FROM vacuum_skip_scan('slow')");
        let expected = ("57014", "canceling statement due to statement timeout");
        assert_eq!((&*failure.code, &*failure.message), expected, "{way}");
        let again = observer.failure("SELECT FROM vacuum_skip_scan('slow')");
        assert_eq!(again, failure, "{way}: the second timeout");
        observer.run("RESET statement_timeout; SELECT FROM vacuum_skip_plan('slow')");
    }
}

#[test]
fn every_function_can_be_cancelled_at_any_moment() {
    let mut observer = server().new_database("moments");
    make_striped(&mut observer, "t", 2500);
    for call in CALLS {
        let mut session = server().connect("moments");
        let pid = session.pid();
        for _ in 0..10 {
            let endless =
                format!("SELECT count(*) FROM generate_series(1, 1000000000) AS i, LATERAL {call} AS f");
            let running = session.start(&endless);
            wait_until("an active session", || {
                let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
                observer.rows(&state) == ["active"]
            });
            observer.run(&format!("SELECT pg_cancel_backend({pid})"));
            let (back, result) = running.finish();
            session = back;
            assert_eq!(result.map_err(|failure| failure.code), Err("57014".to_owned()), "{call}");
        }
        session.run(&format!("SELECT FROM generate_series(1, 3) AS i, LATERAL {call} AS f"));
    }
}

#[test]
fn a_session_can_be_terminated_in_a_scan() {
    let (mut observer, mut holder) = (server().new_database("terminate"), server().connect("terminate"));
    make_slow(&mut holder, &mut observer, "slow");
    for way in WAYS {
        let mut session = server().connect("terminate");
        session.run(way);
        let pid = session.pid();
        let scan = session.start("SELECT FROM vacuum_skip_scan('slow')");
        wait_for_scan(&mut observer, pid);
        observer.run(&format!("SELECT pg_terminate_backend({pid})"));
        let (_session, result) = scan.finish();
        // The client may find the connection closed before it reads the reason.
        assert!(result.is_err(), "{way}: a terminated scan returned {result:?}");
        let reason = format!("[{pid}] FATAL:  terminating connection due to administrator command");
        assert!(server().log().contains(&reason), "{way}: not in the log: {reason}");
        wait_until("the end of a terminated process", || {
            observer.value::<u32>(&format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}")) == 0
        });
        assert_eq!(progress_rows(&mut observer, pid), 0, "{way}: progress rows after the end");
    }
    server().assert_well();
}

#[test]
fn errors_in_subtransactions_leave_nothing_behind() {
    let mut session = server().new_database("subtransactions");
    make_striped(&mut session, "t", 300);
    make_striped(&mut session, "broken", 300);
    session.run("CREATE VIEW v AS SELECT 1");
    // An impossible header in the middle: read with pins on pages before it.
    server().overwrite(&mut session, "broken", 151, 12, &[0xff; 6]);
    for way in WAYS {
        session.run(way);
        session.run("BEGIN");
        session.run(
            "DO $$ DECLARE errors text[]; BEGIN
               FOR i IN 1..300 LOOP
                 BEGIN PERFORM vacuum_skip_scan('broken', 1); EXCEPTION WHEN data_corrupted THEN errors[1] := i; END;
                 BEGIN PERFORM vacuum_skip_scan('v'); EXCEPTION WHEN wrong_object_type THEN errors[2] := i; END;
                 BEGIN PERFORM vacuum_skip_scan('t', -5);
                 EXCEPTION WHEN invalid_parameter_value THEN errors[3] := i; END;
                 BEGIN PERFORM vacuum_skip_ranges('t', 1), 1 / (i - i);
                 EXCEPTION WHEN division_by_zero THEN errors[4] := i; END;
               END LOOP;
               IF errors <> '{300,300,300,300}' THEN RAISE 'errors: %', errors; END IF;
             END $$",
        );
        session.run("SAVEPOINT s");
        let failure = session.failure("SELECT FROM vacuum_skip_scan('broken', 1)");
        assert_eq!(failure.code, "XX001", "{way}: {failure}");
        session.run("ROLLBACK TO s");
        let counts = session.row("SELECT scanned_pages, live_tuples FROM vacuum_skip_scan('t', 1)");
        assert_eq!(counts, "150|150", "{way}: a scan after errors in the same transaction");
        // Pages that do not verify are warned about; leaks must not be.
        let warnings = session.take_warnings();
        let other = warnings.iter().find(|warning| !warning.message.contains("page"));
        assert_eq!(other, None, "{way}: warnings of errors");
        session.run("COMMIT");
    }
}

/// DDL of another session in the midst of one of many scans of the same table.
fn assert_scans_survive(name: &str, ddl: &str) {
    let mut session = server().new_database(name);
    make_striped(&mut session, "t", 300);
    session.run("ALTER TABLE t RESET (fillfactor)");
    let scanner = server().connect(name);
    let pid = scanner.pid();
    let scans = scanner.start(
        "SELECT DISTINCT rel_pages, scanned_pages + skipped_pages FROM generate_series(1, 3000) AS i,
         LATERAL vacuum_skip_scan('t', 1 + i % 40) ORDER BY 1",
    );
    wait_for_scan(&mut session, pid);
    session.run(ddl);
    let (_scanner, result) = scans.finish();
    if ddl.starts_with("DROP") {
        assert_eq!(result.map_err(|failure| failure.code), Err("42P01".to_owned()), "{ddl}");
        return;
    }
    let pages: u32 = session.value("SELECT pg_relation_size('t') / 8192");
    let expected = vec![format!("{pages}|{pages}"), "300|300".to_owned()];
    assert_eq!(result, Ok(expected), "{ddl}: pages of the table and of the scans, after it and before");
}

#[test]
fn scans_beside_truncate_see_all_or_nothing() {
    assert_scans_survive("truncate", "TRUNCATE t");
}

#[test]
fn scans_beside_vacuum_full_see_the_old_or_the_new_table() {
    assert_scans_survive("vacuum_full", "VACUUM FULL t");
}

#[test]
fn scans_beside_a_rewrite_see_the_old_or_the_new_table() {
    assert_scans_survive("rewrite", "ALTER TABLE t ALTER v TYPE bigint");
}

#[test]
fn scans_beside_drop_end_with_undefined_table() {
    assert_scans_survive("drop_table", "DROP TABLE t");
}

/// What each function says of a table that is empty.
const OF_EMPTY: [(&str, &str); 5] = [
    ("SELECT rel_pages FROM vacuum_skip_scan('t')", "0"),
    ("SELECT rel_pages FROM vacuum_skip_plan('t', '{1}')", "0"),
    ("SELECT count(*) FROM vacuum_skip_ranges('t')", "0"),
    ("SELECT vacuum_skip_map('t')", "t: threshold 32 reads 0 of 0 pages (0.0 %)"),
    ("SELECT count(*) FROM vacuum_skip_gaps('t')", "0"),
];

#[test]
fn a_function_that_waited_for_ddl_sees_what_it_did() {
    let (mut session, mut observer) = (server().new_database("waiting"), server().connect("waiting"));
    for (query, of_empty) in OF_EMPTY {
        for (ddl, cancel) in [("TRUNCATE t", false), ("DROP TABLE t", false), ("LOCK TABLE t", true)] {
            make_striped(&mut session, "t", 40);
            session.run(&format!("BEGIN; {ddl}"));
            let waiter = server().connect("waiting");
            let pid = waiter.pid();
            let running = waiter.start(query);
            wait_for_lock(&mut observer, pid);
            if cancel {
                observer.run(&format!("SELECT pg_cancel_backend({pid})"));
            } else {
                session.run("COMMIT");
            }
            let (_waiter, result) = running.finish();
            let expected = match ddl {
                "TRUNCATE t" => Ok(vec![of_empty.to_owned()]),
                "DROP TABLE t" => Err("42P01".to_owned()),
                _ => Err("57014".to_owned()),
            };
            assert_eq!(result.map_err(|failure| failure.code), expected, "{query}, after {ddl}");
            session.run("COMMIT; DROP TABLE IF EXISTS t");
            session.take_warnings();
        }
    }
}

#[test]
fn who_may_not_look_does_not_queue_for_the_lock() {
    let mut owner = server().new_database("privileges");
    owner.run("CREATE ROLE stranger LOGIN; CREATE TABLE t ()");
    owner.run("BEGIN; LOCK TABLE t");
    let mut stranger = server().connect_with("stranger", "privileges", "-c statement_timeout=10s");
    for (query, _) in OF_EMPTY {
        // A wait for the lock would end with 57014.
        assert_eq!(stranger.failure(query).code, "42501", "{query}");
    }
    owner.run("COMMIT; GRANT MAINTAIN ON t TO stranger");
    for (query, of_empty) in OF_EMPTY {
        assert_eq!(stranger.row(query), of_empty, "{query}, with MAINTAIN");
    }
}

#[test]
fn scans_beside_updates_and_vacuums_account_for_every_page() {
    let mut session = server().new_database("busy");
    make_striped(&mut session, "t", 1500);
    session.run("SET statement_timeout = 0");
    // Inserts and deletes at the end, so that VACUUM truncates now and then.
    let writer = server().connect("busy").start(
        "DO $$ BEGIN
           FOR i IN 1..600 LOOP
             UPDATE t SET v = v + 1 WHERE id % 97 = i % 97;
             INSERT INTO t SELECT 10000 + n, 0, repeat('y', 700) FROM generate_series(1, 30) AS n;
             IF i % 5 = 0 THEN DELETE FROM t WHERE id > 10000; END IF;
             COMMIT;
           END LOOP;
         END $$",
    );
    let mut vacuuming = server().connect("busy");
    let vacuums = std::thread::spawn(move || (0..40).for_each(|_| vacuuming.run("VACUUM (FREEZE) t")));
    let mut sizes = Vec::new();
    while !(writer.is_finished() && vacuums.is_finished()) {
        for way in WAYS {
            session.run(way);
            let scan = session.row(
                "SELECT scanned_pages + skipped_pages - rel_pages, rel_pages FROM vacuum_skip_scan('t', 2)",
            );
            let (missing, pages) = scan.split_once('|').unwrap_or_default();
            assert_eq!(missing, "0", "{way}: scanned + skipped pages - all pages");
            sizes.push(pages.to_owned());
        }
        let tiling = "SELECT bool_and(first_block = before + 1), sum(pages) = max(last_block) + 1
            FROM (SELECT *, lag(last_block, 1, -1::bigint) OVER (ORDER BY first_block) AS before
                  FROM vacuum_skip_ranges('t', 1)) AS r";
        assert_eq!(session.row(tiling), "t|t", "ranges without gaps; pages of ranges are all pages");
    }
    let (_, result) = writer.finish();
    result.unwrap_or_else(|failure| panic!("the writer: {failure}"));
    vacuums.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    sizes.dedup();
    assert!(sizes.len() > 20, "the table's sizes while it was scanned: {sizes:?}");
}

#[test]
fn a_query_may_stop_reading_ranges_at_any_row() {
    let mut session = server().new_database("stop");
    make_striped(&mut session, "t", 2500);
    // In a select list rows are made one by one, as they are asked for.
    session.run("SELECT vacuum_skip_ranges('t', 1) LIMIT 1");
    session.run("SELECT (vacuum_skip_ranges('t', 1)).pages LIMIT 1500");
    let cursor = "DECLARE c CURSOR FOR SELECT vacuum_skip_ranges('t', 1); FETCH 1010 FROM c; ";
    session.run(&format!("BEGIN; {cursor} CLOSE c; COMMIT"));
    session.run(&format!("BEGIN; {cursor} COMMIT"));
    session.run(&format!("BEGIN; {cursor} ROLLBACK"));
    session.run(&format!(
        "BEGIN; SAVEPOINT s; {cursor} ROLLBACK TO s; SELECT FROM vacuum_skip_scan('t'); COMMIT"
    ));
    session.run(&format!("BEGIN; {cursor}"));
    session.failure("SELECT 1 / 0");
    session.run("ROLLBACK; SELECT FROM vacuum_skip_scan('t')");
}

#[test]
fn a_table_may_change_between_two_rows_of_ranges() {
    let mut session = server().new_database("between");
    let cursor = "DECLARE c CURSOR FOR SELECT vacuum_skip_ranges('t', 1)";
    for (change, code) in
        [("TRUNCATE t", None), ("DROP TABLE t", Some("42P01")), ("ALTER TABLE t ALTER v TYPE bigint", None)]
    {
        make_striped(&mut session, "t", 2500);
        session.run(&format!("BEGIN; {cursor}"));
        let rows = session.rows("FETCH 10 FROM c").len();
        assert_eq!(rows, 10, "rows before {change}");
        session.run(change);
        let result = session.try_rows("FETCH ALL FROM c");
        match code {
            None => assert!(result.is_ok(), "after {change}: {result:?}"),
            Some(code) => {
                assert_eq!(result.map_err(|failure| failure.code), Err(code.to_owned()), "after {change}")
            }
        }
        session.run("ROLLBACK");
        let pages: u32 = session.value("SELECT rel_pages FROM vacuum_skip_scan('t')");
        assert_eq!(pages, 2500, "pages after the rollback of {change}");
        session.run("DROP TABLE t");
    }
    // VACUUM cannot run in a transaction: in another session.
    make_striped(&mut session, "t", 2500);
    session.run(&format!("BEGIN; {cursor}; FETCH 10 FROM c"));
    server().connect("between").run("SET lock_timeout = '10s'; DELETE FROM t WHERE id > 500");
    server().connect("between").run("VACUUM (FREEZE) t");
    session.run("FETCH ALL FROM c; COMMIT");
}

/// Bytes in all memory contexts of the session's process.
fn context_bytes(session: &mut Session) -> i64 {
    session.value("SELECT sum(total_bytes) FROM pg_backend_memory_contexts")
}

/// Memory of the session's process that is its own, not shared buffers, in kB.
fn resident_kilobytes(session: &Session) -> i64 {
    let path = format!("/proc/{}/status", session.pid());
    let status = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no RssAnon in {status}"))
}

#[test]
fn thousands_of_statements_take_no_memory() {
    let mut session = server().new_database("statements");
    make_striped(&mut session, "t", 50);
    for call in CALLS {
        let statement = format!("SELECT FROM generate_series(1, 1) AS i, LATERAL {call} AS f");
        let repeat = |session: &mut Session, times| (0..times).for_each(|_| session.run(&statement));
        repeat(&mut session, 300);
        let before = (context_bytes(&mut session), resident_kilobytes(&session));
        repeat(&mut session, 2500);
        let after = (context_bytes(&mut session), resident_kilobytes(&session));
        assert!(after.0 <= before.0 + 65536, "{call}: bytes in memory contexts: {before:?} {after:?}");
        assert!(after.1 <= before.1 + 512, "{call}: kB resident: {before:?} {after:?}");
    }
}

#[test]
fn thousands_of_calls_in_one_statement_take_no_memory() {
    let mut session = server().new_database("calls");
    make_striped(&mut session, "t", 50);
    for call in CALLS {
        let before = resident_kilobytes(&session);
        // Between the first calls and the last, while the statement runs.
        let growth: i64 = session.value(&format!(
            "SELECT max(bytes) - min(bytes) FROM (
               SELECT CASE WHEN i IN (1000, 20000)
                      THEN (SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE i > 0) END AS bytes
               FROM generate_series(1, 20000) AS i, LATERAL {call} AS f OFFSET 0) AS q"
        ));
        assert!(growth <= 65536, "{call}: bytes in memory contexts: {growth} more");
        let after = resident_kilobytes(&session);
        assert!(after <= before + 3072, "{call}: kB resident: {before} {after}");
    }
}

//! What the functions say is what a VACUUM does, what the visibility map says,
//! and what pgstattuple counts; and it does not depend on how pages are read.
//!
//! All of it on many differently modified tables. They are made once, in a
//! database of which each test gets a copy: a copy of files, so that every page
//! and every bit of the maps is the same.
//!
//! PostgreSQL 18's VACUUM also scans some all-visible pages eagerly, which ones
//! depends on chance. The functions leave that out by design, so the VACUUM
//! they are compared to runs with vacuum_max_eager_freeze_failure_rate = 0.

use std::process::Command;

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{SHAPES, make_all};
use vacuum_skip_pg_test::{Server, Session, wait_until};

/// PostgreSQL 18's default, io workers.
static SERVER: OnceCell<Server> = OnceCell::new();

/// A copy of the database with all the tables, on the server of this file.
fn copy(name: &str) -> Session {
    server().copy_database("origin", name)
}

fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| server_with_tables(&["io_method=worker"]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

fn server_with_tables(settings: &[&str]) -> Result<Server, String> {
    let server = Server::start(settings)?;
    make_all(&mut server.new_database("origin"));
    Ok(server)
}

/// The tables, and the TOAST table of the one that has one.
fn tables(session: &mut Session) -> Vec<String> {
    let mut tables: Vec<String> = SHAPES.iter().map(|shape| shape.name.to_owned()).collect();
    tables.push(session.value("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'toasted'"));
    tables
}

/// What makes a VACUUM tell of one table, and leave its pages.
const OPTIONS: &str = "TRUNCATE off, PROCESS_TOAST off";

/// In the first session the functions, in the second, a copy, VACUUM.
fn assert_vacuum_agrees(told: &mut Session, done: &mut Session, settings: &str) {
    told.run(settings);
    done.run(settings);
    done.run("SET vacuum_max_eager_freeze_failure_rate = 0");
    for table in tables(told) {
        let scan: u64 = told.value(&format!("SELECT scanned_pages FROM vacuum_skip_scan('{table}', 32)"));
        let plan: u64 =
            told.value(&format!("SELECT scanned_pages FROM vacuum_skip_plan('{table}', '{{32}}')"));
        let vacuum = done.pages_vacuum_scans(OPTIONS, &table);
        assert_eq!((scan, plan), (vacuum, vacuum), "{table}: pages of (scan, plan) and of VACUUM");
    }
}

#[test]
fn vacuum_scans_as_many_pages_as_the_functions_say() {
    assert_vacuum_agrees(&mut copy("normal_told"), &mut copy("normal_done"), "SELECT");
}

#[test]
fn an_aggressive_vacuum_scans_as_many_pages_as_the_functions_say() {
    let (mut told, mut done) = (copy("aggressive_told"), copy("aggressive_done"));
    assert_vacuum_agrees(&mut told, &mut done, "SET vacuum_freeze_table_age = 0");
    let aggressive: bool =
        told.value("SELECT bool_and(aggressive)::text FROM vacuum_skip_scan('all_frozen')");
    assert!(aggressive, "vacuum_freeze_table_age = 0 makes a vacuum aggressive");
}

#[test]
fn the_tables_differ_in_what_the_other_tests_need() {
    let mut session = copy("shapes");
    let pages = |session: &mut Session, table: &str, threshold: u32| -> u64 {
        session.value(&format!("SELECT scanned_pages FROM vacuum_skip_plan('{table}', '{{{threshold}}}')"))
    };
    for table in ["uniform_low", "uniform_middle", "uniform_high", "updated_in_place", "frozen_and_visible"] {
        let counts = [1, 8, 64].map(|threshold| pages(&mut session, table, threshold));
        assert!(counts.is_sorted() && counts[0] < counts[2], "{table}: {counts:?} pages");
    }
    let bits = "SELECT count(*) FILTER (WHERE all_frozen) > 100, \
                count(*) FILTER (WHERE all_visible AND NOT all_frozen) > 100, \
                count(*) FILTER (WHERE NOT all_visible) > 10 FROM pg_visibility_map('frozen_and_visible')";
    assert_eq!(session.row(bits), "t|t|t", "frozen, visible and other pages in frozen_and_visible");
    let dead_items: u64 = session.value("SELECT dead_items FROM vacuum_skip_scan('with_index')");
    assert!(dead_items > 0, "dead items in with_index");
}

/// The rule in plain SQL, from the map as pg_visibility shows it. `$1` is the
/// table, `$2` the threshold, `$3` whether the vacuum is aggressive.
const RULE: &str = "
    WITH map AS (
        SELECT blkno, all_frozen,
               all_visible AND (all_frozen OR NOT $3) AS skippable,
               blkno = max(blkno) OVER () AS last
        FROM pg_visibility_map('$1')
    ), numbered AS (
        SELECT *, skippable AND NOT last AS candidate,
               blkno - row_number() OVER (PARTITION BY skippable AND NOT last ORDER BY blkno) AS island
        FROM map
    ), decided AS (
        SELECT *, candidate AND count(*) OVER (PARTITION BY candidate, island) >= $2 AS skipped
        FROM numbered
    ), runs AS (
        SELECT *, skipped IS DISTINCT FROM lag(skipped) OVER (ORDER BY blkno) AS begins FROM decided
    )
    SELECT count(*), count(*) FILTER (WHERE NOT skipped) AS scanned, count(*) FILTER (WHERE skipped),
           count(DISTINCT island) FILTER (WHERE skipped) AS skipped_ranges,
           count(*) FILTER (WHERE skippable AND NOT skipped) AS skippable_pages_scanned,
           coalesce(bool_or(skipped AND NOT all_frozen), false) AS skipped_all_visible,
           count(*) FILTER (WHERE begins AND NOT skipped) AS read_runs
    FROM runs";

const COLUMNS: &str =
    "rel_pages, scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned, skipped_all_visible";

fn assert_map_agrees(session: &mut Session, aggressive: bool) {
    for table in tables(session) {
        for threshold in [0, 1, 2, 4, 8, 16, 32, 64, i32::MAX] {
            let rule = RULE.replace("$1", &table);
            let rule = rule.replace("$2", &threshold.to_string()).replace("$3", &aggressive.to_string());
            let expected = session.row(&rule);
            let plan = session.row(&format!(
                "SELECT {COLUMNS}, read_runs FROM vacuum_skip_plan('{table}', '{{{threshold}}}')"
            ));
            assert_eq!(plan, expected, "{table}, threshold {threshold}: the plan and the map");
            let scan =
                session.row(&format!("SELECT {COLUMNS} FROM vacuum_skip_scan('{table}', {threshold})"));
            let expected = expected.rsplit_once('|').map_or("", |(counts, _read_runs)| counts);
            assert_eq!(scan, expected, "{table}, threshold {threshold}: the scan and the map");
        }
    }
}

#[test]
fn every_threshold_reads_what_the_map_says() {
    assert_map_agrees(&mut copy("map_normal"), false);
}

#[test]
fn every_threshold_reads_what_the_map_says_when_aggressive() {
    let mut session = copy("map_aggressive");
    session.run("SET vacuum_freeze_table_age = 0");
    assert_map_agrees(&mut session, true);
}

#[test]
fn ranges_cover_the_table_and_add_up_to_the_plan() {
    let mut session = copy("ranges");
    for (table, threshold) in
        tables(&mut session).iter().flat_map(|table| [(table, 1), (table, 8), (table, 32)])
    {
        // Each range begins where the one before ends, and no two neighbours
        // have the same reason.
        let tiling = session.row(&format!(
            "SELECT coalesce(bool_and(first_block = before + 1 AND pages = last_block - first_block + 1
                                      AND reason IS DISTINCT FROM reason_before), true),
                    coalesce(max(last_block) + 1, 0), coalesce(sum(pages), 0)
             FROM (SELECT *, lag(last_block, 1, -1::bigint) OVER w AS before, lag(reason) OVER w AS reason_before
                   FROM vacuum_skip_ranges('{table}', {threshold}) WINDOW w AS (ORDER BY first_block)) AS r"
        ));
        let size: u64 = session.value(&format!("SELECT pg_relation_size('{table}') / 8192"));
        assert_eq!(
            tiling,
            format!("t|{size}|{size}"),
            "{table}, threshold {threshold}: the ranges and the size"
        );

        let sums = session.row(&format!(
            "SELECT coalesce(sum(pages) FILTER (WHERE action = 'scan'), 0),
                    coalesce(sum(pages) FILTER (WHERE action = 'skip'), 0), count(*) FILTER (WHERE action = 'skip'),
                    coalesce(sum(pages) FILTER (WHERE reason IN ('below threshold', 'last block')), 0),
                    coalesce(bool_or(action = 'skip' AND reason = 'all-visible'), false)
             FROM vacuum_skip_ranges('{table}', {threshold})"
        ));
        let plan = session.row(&format!(
            "SELECT scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned, skipped_all_visible
             FROM vacuum_skip_plan('{table}', '{{{threshold}}}')"
        ));
        assert_eq!(sums, plan, "{table}, threshold {threshold}: sums over the ranges and the plan");
    }
}

#[test]
fn gaps_add_up_to_what_threshold_1_skips() {
    let mut session = copy("gaps");
    for table in tables(&mut session) {
        let gaps = session.row(&format!(
            "SELECT coalesce(sum(ranges), 0), coalesce(sum(pages), 0),
                    coalesce(bool_and(pages BETWEEN ranges * from_pages AND ranges * to_pages), true)
             FROM vacuum_skip_gaps('{table}')"
        ));
        let plan = session.row(&format!(
            "SELECT skipped_ranges, skipped_pages, true FROM vacuum_skip_plan('{table}', '{{1}}')"
        ));
        assert_eq!(gaps, plan, "{table}: gaps and the plan for threshold 1");
    }
}

#[test]
fn tuples_are_those_that_pgstattuple_counts() {
    let mut session = copy("tuples");
    for table in tables(&mut session) {
        // Nobody else is in this database, so what is dead is dead to everyone.
        let scan = session.row(&format!(
            "SELECT live_tuples, dead_tuples, recently_dead_tuples, dead_bytes, free_bytes
             FROM vacuum_skip_scan('{table}', 2147483647)"
        ));
        let pgstattuple = session.row(&format!(
            "SELECT tuple_count, dead_tuple_count, 0, dead_tuple_len, free_space FROM pgstattuple('{table}')"
        ));
        assert_eq!(scan, pgstattuple, "{table}: live, dead, recently dead, bytes dead and free");
    }
}

#[test]
fn tuples_that_an_old_snapshot_sees_are_recently_dead() {
    let mut session = copy("recently_dead");
    let mut old = server().connect("recently_dead");
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM one_page");
    session.run("DELETE FROM one_page WHERE id <= 2; UPDATE one_page SET v = 0 WHERE id = 3");
    let counts = "SELECT live_tuples, recently_dead_tuples, dead_tuples FROM vacuum_skip_scan('one_page')";
    assert_eq!(session.row(counts), "3|3|0", "live, recently dead and dead beside an old snapshot");
    old.run("COMMIT");
    // The scan's own snapshot keeps what transactions in other databases, those
    // of other tests, may see.
    wait_until("3 dead tuples once the old snapshot is gone", || session.row(counts) == "3|0|3");
}

/// All that a scan finds, and none of what it costs.
const FINDINGS: &str = "aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges, \
    skippable_pages_scanned, skipped_all_visible, new_pages, empty_pages, live_tuples, recently_dead_tuples, \
    dead_tuples, dead_items, dead_bytes, free_bytes";

/// Empties shared buffers of the table, so that the scan has to read it.
fn scan_cold(session: &mut Session, columns: &str, table: &str) -> String {
    session.run(&format!("CHECKPOINT; SELECT pg_buffercache_evict_relation('{table}')"));
    session.row(&format!("SELECT {columns} FROM vacuum_skip_scan('{table}', 4)"))
}

fn assert_same_findings(session: &mut Session, table: &str, settings: &[String]) {
    let expected = scan_cold(session, FINDINGS, table);
    for setting in settings {
        session.run(setting);
        let found = scan_cold(session, FINDINGS, table);
        assert_eq!(found, expected, "{table}, after {setting}: {FINDINGS}");
        let warm = session.row(&format!("SELECT {FINDINGS} FROM vacuum_skip_scan('{table}', 4)"));
        assert_eq!(warm, expected, "{table} in shared buffers, after {setting}: {FINDINGS}");
    }
}

fn ways_to_read() -> Vec<String> {
    let set = |name: &str, value: &dyn ToString| format!("SET {name} = '{}'", value.to_string());
    let mut settings = Vec::new();
    for mode in ["sync", "stream"] {
        settings.push(set("vacuum_skip.read_mode", &mode));
        settings.extend([0, 1, 2, 3, 5, 31, 256, 8192].map(|blocks| set("vacuum_skip.read_ahead", &blocks)));
        settings.extend([0, 1, 1000].map(|count| set("maintenance_io_concurrency", &count)));
        settings.extend(["0", "128kB", "16GB"].map(|size| set("vacuum_buffer_usage_limit", &size)));
        settings.extend(["8kB", "1MB"].map(|size| set("io_combine_limit", &size)));
        settings.push("RESET ALL".to_owned());
    }
    settings
}

#[test]
fn what_a_scan_finds_does_not_depend_on_how_it_reads() {
    let mut session = copy("ways_to_read");
    for table in ["uniform_middle", "clustered_updates", "with_index", "one_page", "no_page"] {
        assert_same_findings(&mut session, table, &ways_to_read());
    }
}

#[test]
fn a_scan_accounts_for_every_buffer_it_uses() {
    let mut session = copy("buffers");
    session.run("SET track_io_timing = on");
    // The first scan of a session also looks for settings of the tablespace.
    session.run("SELECT * FROM vacuum_skip_scan('one_page')");
    for mode in ["stream", "sync"] {
        session.run(&format!("SET vacuum_skip.read_mode = {mode}"));
        // Beside the pages of the table it uses the only page of the map.
        let cold = "blocks_read = scanned_pages + 1, blocks_hit = 0, read_time_ms > 0, elapsed_ms > 0";
        let counts = "scanned_pages, blocks_hit, blocks_read, read_time_ms, elapsed_ms";
        let found = scan_cold(&mut session, &format!("{cold}, {counts}"), "uniform_high");
        assert!(found.starts_with("t|t|t|t|"), "{mode}: {cold}: {counts}: {found}");
    }
}

#[test]
fn a_temporary_table_is_read_like_any_other() {
    drop(copy("temporary"));
    let mut session = server().connect_with("postgres", "temporary", "-c temp_buffers=1MB");
    session.run("CREATE TEMPORARY TABLE t AS SELECT * FROM filled(20000)");
    session.run("VACUUM t");
    session.run("UPDATE t SET v = v + 1 WHERE hashint4(id) % 300 = 0");
    let counts = format!("SELECT {FINDINGS} FROM vacuum_skip_scan('t', 4)");
    let expected = session.row(&counts);
    for setting in ways_to_read() {
        session.run(&setting);
        assert_eq!(session.row(&counts), expected, "after {setting}: {FINDINGS}");
    }
    session.run("SET vacuum_max_eager_freeze_failure_rate = 0");
    let plan: u64 = session.value("SELECT scanned_pages FROM vacuum_skip_plan('t', '{32}')");
    let scan: u64 = session.value("SELECT scanned_pages FROM vacuum_skip_scan('t', 32)");
    let vacuum = session.pages_vacuum_scans(OPTIONS, "t");
    assert_eq!((scan, plan), (vacuum, vacuum), "pages of (scan, plan) and of VACUUM");
}

/// The same on a server of other settings, with some of the tables.
fn assert_reads_well(settings: &[&str]) {
    let server = server_with_tables(settings).unwrap_or_else(|error| panic!("{error}"));
    let (mut told, mut done) =
        (server.copy_database("origin", "told"), server.copy_database("origin", "done"));
    for table in ["uniform_middle", "frozen_and_visible"] {
        assert_same_findings(&mut told, table, &ways_to_read());
    }
    assert_vacuum_agrees(&mut told, &mut done, "SELECT");
    server.assert_well();
}

#[test]
fn a_server_without_io_workers_reads_the_same() {
    assert_reads_well(&["io_method=sync"]);
}

#[test]
fn a_server_with_direct_io_reads_the_same() {
    // Some file systems cannot; then dd says so, and there is nothing to test.
    let probe = std::env::temp_dir().join(format!("vacuum_skip_direct.{}", std::process::id()));
    let of = format!("of={}", probe.display());
    let dd = Command::new("dd").args(["if=/dev/zero", "bs=8192", "count=1", "oflag=direct", &of]).output();
    let _ = std::fs::remove_file(&probe);
    let dd = dd.unwrap_or_else(|error| panic!("dd: {error}"));
    if dd.status.success() {
        assert_reads_well(&["debug_io_direct=data"]);
    } else {
        println!("not tested: no direct I/O here: {}", String::from_utf8_lossy(&dd.stderr));
    }
}

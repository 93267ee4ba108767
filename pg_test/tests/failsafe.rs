//! The failsafe, engaged before a VACUUM begins or while it is under way: what is given up
//! is the same as by the server's own VACUUM, and so is what is told of it.
//!
//! A table is almost old enough. A page that VACUUM must have for itself is held by a cursor:
//! one of the table, with a row to be frozen, or one of an index. So VACUUM waits there. Then
//! some transactions pass, the table is old enough, and the cursor is closed.

use vacuum_skip_pg_test::tables::create_filled;
use vacuum_skip_pg_test::{Server, Session, assert_sound, wait_until};

/// The failsafe engages from an age of 105 % of autovacuum_freeze_max_age on. Each test has
/// a server of its own: a transaction that runs elsewhere would keep rows from being old.
fn server() -> Server {
    let settings = ["autovacuum_freeze_max_age=100000", "vacuum_failsafe_age=0"];
    Server::start(&settings).unwrap_or_else(|error| panic!("{error}"))
}

/// The server's code, and ours.
const ENGINES: [&str; 2] = ["never", "always"];

/// Makes `t` as old as that, in transactions.
fn set_age(session: &mut Session, age: u32) {
    session.run(&format!(
        "UPDATE pg_class SET relfrozenxid = ((pg_current_xact_id()::text::bigint - {age} + 4294967296)
           % 4294967296)::text::xid WHERE oid = 't'::regclass"
    ));
}

const PROGRESS: &str =
    "SELECT phase, heap_blks_total, heap_blks_scanned, heap_blks_vacuumed, index_vacuum_count,
    max_dead_tuple_bytes, dead_tuple_bytes, num_dead_item_ids, indexes_total, indexes_processed
    FROM pg_stat_progress_vacuum";

/// Holds the page of the table that has row `id`, and nothing of its indexes.
fn page_of_row(server: &Server, id: u32) -> String {
    let held = server.connect("test").row(&format!("SELECT ctid FROM t WHERE id = {id}"));
    format!("SELECT FROM t WHERE ctid = '{held}'")
}

/// What `vacuum` of `t` tells if the failsafe engages while it waits for the page at which a
/// cursor of `query` is; and how far it had got by then.
fn told(server: &Server, engine: &str, query: &str, vacuum: &str) -> Vec<String> {
    let mut observer = server.connect("test");
    set_age(&mut observer, 104_900);
    let mut holder = server.connect("test");
    holder.run("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off");
    holder.run(&format!("BEGIN; DECLARE c CURSOR FOR {query}; FETCH c"));
    let mut session = server.connect("test");
    session.run(&format!("SET vacuum_skip.vacuum_engine = {engine}; SET maintenance_work_mem = '64kB'"));
    let pid = session.pid();
    let running = session.start(vacuum);
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'BufferPin'");
    wait_until("a VACUUM that waits for a page", || {
        assert!(!running.is_finished(), "{engine}: the VACUUM did not wait");
        observer.row(&waits) == "1"
    });
    let progress = observer.row(&format!("{PROGRESS} WHERE pid = {pid}"));
    for _ in 0..200 {
        observer.run("SELECT pg_current_xact_id()");
    }
    drop(holder);
    let (mut session, result) = running.finish();
    result.unwrap_or_else(|error| panic!("{engine}: {error}"));
    let mut told = messages(&mut session);
    told.push(progress);
    told
}

/// What `session` was told, but for what depends on time and on the rest of the server.
fn messages(session: &mut Session) -> Vec<String> {
    let varies =
        ["read rate", "buffer usage", "WAL usage", "system usage", "skip pages", "cutoff", "new rel"];
    let kept = |line: &String| !varies.iter().any(|what| line.contains(what));
    session.take_messages_in_full().into_iter().filter(kept).collect()
}

/// How many pages of a table or an index are in shared buffers.
fn pages_in_buffers(session: &mut Session, relation: &str) -> u32 {
    session.value(&format!(
        "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('{relation}')
         AND relforknumber = 0
         AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ))
}

#[track_caller]
fn assert_engaged_after(told: &[String], index_scans: u32) {
    let line = format!("as a failsafe after {index_scans} index scans");
    assert!(told.iter().any(|told| told.starts_with("WARNING") && told.ends_with(&line)), "{told:#?}");
}

#[test]
fn a_failsafe_that_engages_from_the_start() {
    let server = server();
    let mut session = server.new_database("test");
    create_filled(&mut session);
    let [servers, ours] = ENGINES.map(|engine| {
        session.run(
            "CREATE TABLE t AS SELECT * FROM filled(4000); CREATE INDEX ON t (id); CREATE INDEX ON t (v);
             DELETE FROM t WHERE id % 9 = 0 OR id > 3000",
        );
        set_age(&mut session, 106_000);
        server.evict(&mut session, "t");
        session.run(&format!("SET vacuum_skip.vacuum_engine = {engine}"));
        session
            .run("SET vacuum_cost_delay = 10; SET vacuum_cost_limit = 1; SET track_cost_delay_timing = on");
        session.run("VACUUM (VERBOSE, PARALLEL 2, BUFFER_USAGE_LIMIT '128kB', PROCESS_TOAST off) t");
        let pages: u32 = session.value("SELECT pg_relation_size('t') / 8192");
        assert_eq!(pages_in_buffers(&mut session, "t"), pages, "{engine}: all of shared buffers is used");
        assert_sound(&mut session, "t");
        let told = messages(&mut session);
        session.run("DROP TABLE t");
        told
    });
    assert_eq!(ours, servers);
    assert_engaged_after(&ours, 0);
    assert!(ours.iter().any(|line| line.contains("delay time: 0.000 ms")), "{ours:#?}");
}

#[test]
fn a_failsafe_that_engages_between_passes_over_the_indexes() {
    let server = server();
    let mut session = server.new_database("test");
    create_filled(&mut session);
    let [servers, ours] = ENGINES.map(|engine| {
        session.run(
            "CREATE TABLE t AS SELECT * FROM filled(6000); CREATE INDEX ON t (id); CREATE INDEX ON t (v);
             DELETE FROM t WHERE id % 9 = 0 OR id > 4000",
        );
        let told = told(
            &server,
            engine,
            &page_of_row(&server, 1801),
            "VACUUM (VERBOSE, FREEZE, PROCESS_TOAST off) t",
        );
        assert_sound(&mut session, "t");
        session.run("DROP TABLE t");
        told
    });
    assert_eq!(ours, servers);
    assert_engaged_after(&ours, 2);
    for line in ["pages: 0 removed", "index scan bypassed by failsafe"] {
        assert!(ours.iter().any(|told| told.contains(line)), "{line}: {ours:#?}");
    }
}

#[test]
fn a_failsafe_that_engages_between_indexes() {
    let server = server();
    let mut session = server.new_database("test");
    create_filled(&mut session);
    let [servers, ours] = ENGINES.map(|engine| {
        session.run(
            "CREATE TABLE t AS SELECT * FROM filled(2000); CREATE INDEX ON t USING hash (id);
             CREATE INDEX ON t (v); CREATE INDEX ON t (id); DELETE FROM t WHERE id % 9 = 0",
        );
        // A scan of an index alone keeps its page, so that it sees what VACUUM has not taken away.
        let query = "SELECT v FROM t ORDER BY v";
        let told = told(&server, engine, query, "VACUUM (VERBOSE, PROCESS_TOAST off) t");
        assert_sound(&mut session, "t");
        session.run("DROP TABLE t");
        told
    });
    assert_eq!(ours, servers);
    assert_engaged_after(&ours, 0);
    for line in ["index \"t_v_idx\"", "index scan bypassed by failsafe", "vacuuming indexes"] {
        assert!(ours.iter().any(|told| told.contains(line)), "{line}: {ours:#?}");
    }
    assert!(!ours.iter().any(|told| told.contains("index \"t_id_idx1\"")), "{ours:#?}");
}

#[test]
fn a_failsafe_of_a_table_ends_before_its_toast_table() {
    let server = server();
    let mut session = server.new_database("test");
    for engine in ENGINES {
        session.run(
            "CREATE TABLE t (v text); ALTER TABLE t ALTER v SET STORAGE external;
             INSERT INTO t SELECT repeat('x', 5000) FROM generate_series(1, 100); DELETE FROM t",
        );
        set_age(&mut session, 106_000);
        session.run(&format!("SET vacuum_skip.vacuum_engine = {engine}"));
        session.run("VACUUM t");
        assert_engaged_after(&session.take_messages_in_full(), 0);
        let sizes = "SELECT pg_relation_size(oid) > 0, pg_relation_size(reltoastrelid) FROM pg_class
            WHERE oid = 't'::regclass";
        assert_eq!(session.row(sizes), "t|0", "{engine}: only the TOAST table is cut off");
        session.run("DROP TABLE t");
    }
}

/// Pages between two looks at the age during a scan.
const FAILSAFE_EVERY_PAGES: u64 = 524_288;

/// Makes `t` as many pages long. New pages take no room on the disk, and not much time.
fn add_new_pages(server: &Server, session: &mut Session, pages: u64) {
    const SEGMENT: u64 = 131_072;
    server.evict(session, "t");
    let path: String = session.value("SELECT pg_relation_filepath('t')");
    for segment in 0..=pages / SEGMENT {
        let suffix = if segment == 0 { String::new() } else { format!(".{segment}") };
        let bytes = (pages - segment * SEGMENT).min(SEGMENT) * 8192;
        session.run(&format!("COPY (SELECT) TO PROGRAM 'truncate --size {bytes} {path}{suffix}'"));
    }
}

#[test]
fn a_failsafe_that_engages_in_the_middle_of_a_scan() {
    let server = server();
    let mut session = server.new_database("test");
    let [servers, ours] = ENGINES.map(|engine| {
        session.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
        add_new_pages(&server, &mut session, FAILSAFE_EVERY_PAGES + 2000);
        let vacuum = "VACUUM (VERBOSE, FREEZE, BUFFER_USAGE_LIMIT '128kB') t";
        let told = told(&server, engine, &page_of_row(&server, 1), vacuum);
        let cached = pages_in_buffers(&mut session, "t");
        assert!((2000..2500).contains(&cached), "{engine}: {cached} pages are in shared buffers");
        session.run("DROP TABLE t");
        told
    });
    assert_eq!(ours, servers);
    assert_engaged_after(&ours, 0);
    assert!(ours.iter().any(|line| line.contains("pages: 0 removed")), "{ours:#?}");
}

#[test]
fn without_a_failsafe_a_vacuum_keeps_to_its_ring() {
    let server = server();
    let mut session = server.new_database("test");
    create_filled(&mut session);
    for engine in ENGINES {
        session.run(
            "CREATE TABLE t AS SELECT * FROM filled(4000); CREATE INDEX i ON t (id, filler);
             DELETE FROM t WHERE id % 9 = 0",
        );
        for relation in ["t", "i"] {
            server.evict(&mut session, relation);
        }
        session.run(&format!("SET vacuum_skip.vacuum_engine = {engine}"));
        session.run("VACUUM (BUFFER_USAGE_LIMIT '128kB') t");
        for relation in ["t", "i"] {
            let pages: u32 = session.value(&format!("SELECT pg_relation_size('{relation}') / 8192"));
            let cached = pages_in_buffers(&mut session, relation);
            assert!(
                pages > 150 && cached < 32,
                "{engine}: {cached} of {pages} pages of {relation} are cached"
            );
        }
        session.run("DROP TABLE t");
    }
}

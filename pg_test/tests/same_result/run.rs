//! Makes the tables, and has a copy of the server vacuum them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use vacuum_skip_pg_test::tables::create_filled;
use vacuum_skip_pg_test::{Server, Session, wait_until};

use crate::corpus::{Buffers, Case, FUNCTIONS};

/// Whose VACUUM a server runs, and how.
pub struct Side {
    /// Its name in messages.
    pub name: &'static str,
    /// Settings of its server.
    pub settings: &'static [&'static str],
    /// Changes to the commands of some cases: name, what is replaced, by what.
    pub changes: &'static [(&'static str, &'static str, &'static str)],
}

/// Everything that could differ: what was told, also to standbys, what is in the catalogs
/// and statistics, and every page.
pub struct Outcome {
    /// Whose.
    pub side: &'static str,
    /// For each case the lines of all messages, and the records of WAL.
    pub told: BTreeMap<&'static str, Vec<String>>,
    /// For each database, or relation of one, what SQL says of it.
    pub figures: BTreeMap<String, String>,
    /// Each fork of each relation, by a name that says which.
    pub forks: BTreeMap<String, Fork>,
    /// Whether the server is an assert-enabled one.
    pub assertions: bool,
    /// Keeps the files.
    _server: Server,
}

/// Where the pages are.
pub enum Fork {
    /// Of a stopped server.
    File(PathBuf),
    /// Of a temporary table, which is gone with its session.
    Pages(Vec<u8>),
}

impl Fork {
    /// All the bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Fork::File(path) => fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            Fork::Pages(bytes) => bytes.clone(),
        }
    }
}

/// For what happens on its own: nothing shall. Checkpoints and the background
/// writer would decide which pages are still in need of a full page image, and
/// which buffers are still dirty. All tables together fit in shared buffers,
/// and no ring makes VACUUM write them out, but in the cases about that.
/// A case that waits for a lock is wrong, and says so at once.
const QUIET: [&str; 10] = [
    "checkpoint_timeout=1d",
    "max_wal_size=100GB",
    "wal_recycle=off",
    "bgwriter_lru_maxpages=0",
    "shared_buffers=768MB",
    "vacuum_buffer_usage_limit=0",
    "max_parallel_workers=8",
    "max_prepared_transactions=5",
    "session_preload_libraries=",
    "lock_timeout=10s",
];

fn databases(cases: &[Case]) -> BTreeSet<&'static str> {
    cases.iter().map(|case| case.database).collect()
}

/// A stopped server with the tables of `cases`.
pub fn build(cases: &[Case]) -> Server {
    let server = Server::start(&QUIET).unwrap_or_else(|error| panic!("{error}"));
    for database in databases(cases) {
        let mut session = server.new_database(database);
        create_filled(&mut session);
        for function in FUNCTIONS {
            session.run(function);
        }
    }
    for case in cases {
        let mut session = server.connect(case.database);
        session.run_each(&case.setup.replace("$t", case.name));
        (case.pages)(&server, &mut session, case.name);
    }
    server.connect("postgres").run("CREATE EXTENSION pg_walinspect");
    server.stop();
    server
}

/// Runs the commands of all `cases` on a copy of `origin`.
pub fn vacuum_copy(origin: &Server, side: &Side, cases: &[Case]) -> Outcome {
    let server = origin.start_copy(side.settings).unwrap_or_else(|error| panic!("{error}"));
    let mut observer = server.connect("postgres");
    let mut forks = BTreeMap::new();
    let mut told = BTreeMap::new();
    for case in cases {
        let (lines, temporary) = vacuum_case(&server, &mut observer, side, case);
        told.insert(case.name, lines);
        forks.extend(temporary);
    }
    server.assert_well();
    let assertions = observer.row("SHOW debug_assertions") == "on";
    let figures = figures(&server, cases);
    let names = relations(&server, cases);
    end(&mut server.connect("template1"), observer);
    server.stop();
    let data = server.folder().join("data");
    forks.extend(names.into_iter().flat_map(|(name, path)| forks_in(&data, &name, &path)));
    Outcome { side: side.name, told, figures, forks, assertions, _server: server }
}

/// Where WAL ends, all of which is on disk then.
const FLUSH: &str = "SELECT pg_logical_emit_message(false, 'a', 'mark', true)";

/// What a standby is told of tables and their maps. In what order parallel workers write of
/// indexes is a matter of time.
const WAL: &str = "SELECT concat_ws(' ', 'WAL:', resource_manager, record_type, description, block_ref)
    FROM pg_get_wal_records_info('$start', '$end')
    WHERE resource_manager IN ('Heap', 'Heap2', 'Storage')";

type Temporary = Vec<(String, Fork)>;

fn vacuum_case(
    server: &Server,
    observer: &mut Session,
    side: &Side,
    case: &Case,
) -> (Vec<String>, Temporary) {
    let text = |statements: &str| statements.replace("$t", case.name);
    observer.run("CHECKPOINT");
    let mut beside = server.connect(case.database);
    beside.run_each(&text(case.beside));
    let mut session = server.connect(case.database);
    session.run_each(&text(case.before));
    session.take_messages_in_full();
    let vacuum = side.changes.iter().filter(|change| change.0 == case.name);
    let vacuum = vacuum.fold(text(case.vacuum), |vacuum, (_, from, to)| vacuum.replace(from, to));
    let mut lines = Vec::new();
    let start = observer.row(FLUSH);
    for round in ["first", "second"] {
        session.run_each(&vacuum);
        lines
            .extend(session.take_messages_in_full().into_iter().map(|line| format!("{round} round: {line}")));
    }
    let wal = WAL.replace("$start", &start).replace("$end", &observer.row(FLUSH));
    lines.extend(observer.rows(&wal));
    let temporary = temporary_forks(&mut session, case.name);
    end(observer, session);
    end(observer, beside);
    (lines, temporary)
}

/// Closes a session and waits until it is gone. Its end may drop temporary
/// tables, for which it needs a transaction id.
fn end(observer: &mut Session, session: Session) {
    let pid = session.pid();
    drop(session);
    wait_until("the end of a session", || {
        observer.value::<u32>(&format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}")) == 0
    });
}

/// The pages of the session's temporary tables, through its local buffers.
fn temporary_forks(session: &mut Session, case: &str) -> Temporary {
    let names = "SELECT relname || '|' || fork FROM pg_class, unnest('{main,fsm,vm}'::text[]) AS fork
                 WHERE relnamespace = pg_my_temp_schema() AND pg_relation_size(oid, fork) > 0 ORDER BY 1";
    let names = session.rows(names);
    let pages = |name: String| {
        let (relation, fork) = name.split_once('|').unwrap_or_default();
        let hex = session.rows(&format!(
            "SELECT encode(get_raw_page('{relation}', '{fork}', block), 'hex')
             FROM generate_series(0, pg_relation_size('{relation}', '{fork}') / 8192 - 1) AS block"
        ));
        let bytes = hex.iter().flat_map(|page| page.as_bytes().chunks(2)).map(from_hex).collect();
        (format!("{case}: {relation}, {fork} fork"), Fork::Pages(bytes))
    };
    names.into_iter().map(pages).collect()
}

fn from_hex(digits: &[u8]) -> u8 {
    let digits = str::from_utf8(digits).unwrap_or_default();
    u8::from_str_radix(digits, 16).unwrap_or_else(|error| panic!("{digits}: {error}"))
}

/// What SQL says after all the cases. Each row is a name and the figures.
///
/// Scans of catalogs are not among them: they depend on what a session has in
/// its caches. Times are not, either.
const FIGURES: [&str; 5] = [
    "SELECT 'pg_class of ' || oid::regclass,
            concat_ws(' ', relpages, reltuples, relallvisible, relallfrozen, relfrozenxid, relminmxid,
                      relhasindex)
     FROM pg_class WHERE relkind <> 'v'",
    "SELECT 'pg_stat_all_tables of ' || relid::regclass,
            concat_ws(' ', n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_live_tup, n_dead_tup,
                      n_mod_since_analyze, n_ins_since_vacuum, vacuum_count, autovacuum_count, analyze_count,
                      last_vacuum IS NULL, last_analyze IS NULL)
     FROM pg_stat_all_tables",
    "SELECT 'scans in pg_stat_user_tables and _indexes of ' || relid::regclass, concat_ws(' ', t.*, i.*) FROM
     (SELECT relid, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch FROM pg_stat_user_tables) AS t
     LEFT JOIN (SELECT relid, array_agg((indexrelid, idx_scan, idx_tup_read, idx_tup_fetch)::text
                                        ORDER BY indexrelid)
                FROM pg_stat_user_indexes GROUP BY relid) AS i USING (relid)",
    "SELECT 'pg_statistic of ' || starelid::regclass || ', column ' || staattnum
            || CASE WHEN stainherit THEN ', inherited' ELSE '' END, s::text
     FROM pg_statistic AS s",
    "SELECT 'pg_database of ' || datname, concat_ws(' ', datfrozenxid, datminmxid) FROM pg_database
     WHERE datname = current_database()",
];

/// Blocks of the table and of its indexes that were read. How many were found
/// instead is compared where VACUUM tells it.
const BLOCKS: &str = "SELECT 'pg_statio_user_tables of ' || relname,
        concat_ws(' ', heap_blks_read, idx_blks_read, toast_blks_read, tidx_blks_read)
    FROM pg_statio_user_tables";

fn figures(server: &Server, cases: &[Case]) -> BTreeMap<String, String> {
    let varying = cases.iter().filter(|case| case.buffers == Buffers::Vary);
    let varying: Vec<&str> = varying.map(|case| case.name).collect();
    let blocks = format!("{BLOCKS} WHERE relname NOT IN ('{}')", varying.join("', '"));
    let mut figures = BTreeMap::new();
    for database in databases(cases) {
        let mut session = server.connect(database);
        for query in FIGURES.into_iter().chain([&*blocks]) {
            for row in session.rows(query) {
                let (name, figure) = row.split_once('|').unwrap_or_default();
                figures.insert(format!("{database}: {name}"), figure.to_owned());
            }
        }
    }
    figures
}

/// Databases of which the catalogs are compared page by page too. Elsewhere
/// temporary schemas get in the way, named by which process slot was free.
const WITH_CATALOGS: [&str; 2] = ["catalogs", "whole_database"];

/// The relations that have files: name and path.
fn relations(server: &Server, cases: &[Case]) -> Vec<(String, String)> {
    let mut relations = Vec::new();
    for database in databases(cases) {
        let first = if WITH_CATALOGS.contains(&database) { 0 } else { 16384 };
        let rows = server.connect(database).rows(&format!(
            "SELECT concat_ws(', ', coalesce(toasted.relname, indexed.relname), c.relname),
                    pg_relation_filepath(c.oid)
             FROM pg_class AS c LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
             LEFT JOIN pg_class AS indexed ON indexed.oid = i.indrelid
             LEFT JOIN pg_class AS toasted ON toasted.reltoastrelid = coalesce(i.indrelid, c.oid)
             WHERE pg_relation_filepath(c.oid) IS NOT NULL AND c.oid >= {first}"
        ));
        for row in rows {
            let (name, path) = row.split_once('|').unwrap_or_default();
            relations.push((format!("{database}: {name}"), path.to_owned()));
        }
    }
    relations
}

fn forks_in(data: &Path, relation: &str, path: &str) -> Vec<(String, Fork)> {
    let forks = [("main", ""), ("fsm", "_fsm"), ("vm", "_vm"), ("init", "_init")];
    let file = |(fork, suffix): (&str, &str)| {
        let file = data.join(format!("{path}{suffix}"));
        file.exists().then(|| (format!("{relation}, {fork} fork"), Fork::File(file)))
    };
    forks.into_iter().filter_map(file).collect()
}

//! A hot standby says what its primary says, and needs no write to say it.

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{SHAPES, make_all, make_striped};
use vacuum_skip_pg_test::{Server, Session, wait_until};

/// A primary and its standby.
struct Pair {
    primary: Server,
    standby: Server,
}

static PAIR: OnceCell<Pair> = OnceCell::new();

fn pair() -> &'static Pair {
    PAIR.get_or_try_init(|| Pair::start(|_| ())).unwrap_or_else(|error| panic!("{error}"))
}

impl Pair {
    /// Starts a primary, has it filled, and starts its standby. Nothing but the
    /// test writes.
    fn start(fill: impl FnOnce(&Server)) -> Result<Pair, String> {
        let primary = Server::start(&["autovacuum=off"])?;
        fill(&primary);
        // Replay waits for queries rather than cancel them.
        let standby = primary.start_standby(&["max_standby_streaming_delay=-1"])?;
        Ok(Pair { primary, standby })
    }

    /// Waits until the standby has everything that the primary has.
    fn catch_up(&self) {
        let written: String = self.primary.connect("postgres").value("SELECT pg_current_wal_insert_lsn()");
        let mut standby = self.standby.connect("postgres");
        wait_until("the standby to catch up", || {
            standby.row(&format!("SELECT pg_last_wal_replay_lsn() >= '{written}'")) == "t"
        });
    }

    /// Connections to the same database of both, caught up.
    fn connect(&self, database: &str) -> [Session; 2] {
        self.catch_up();
        [self.primary.connect(database), self.standby.connect(database)]
    }
}

/// Everything that the functions say of table `$t`, but for what it costs.
const ANSWERS: [&str; 5] = [
    "SELECT * FROM vacuum_skip_plan('$t')",
    "SELECT * FROM vacuum_skip_gaps('$t')",
    "SELECT vacuum_skip_map('$t', 4)",
    "SELECT action, reason, count(*), sum(pages), sum(first_block * (last_block % 1000)) \
     FROM vacuum_skip_ranges('$t', 4) GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT threshold, read_mode, aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges, \
     skippable_pages_scanned, skipped_all_visible, new_pages, empty_pages, live_tuples, \
     recently_dead_tuples, dead_tuples, dead_items, dead_bytes, free_bytes FROM vacuum_skip_scan('$t', 4, '$mode')",
];

#[test]
fn a_standby_answers_as_its_primary() {
    // Servers of its own: on a standby, what is dead to everyone waits for the
    // transactions and queries of all databases. The tables are made before the
    // standby begins: pages by which a file was extended, and which were not used
    // yet, are copied but not replicated.
    let pair = Pair::start(|primary| make_all(&mut primary.new_database("answers")));
    let pair = pair.unwrap_or_else(|error| panic!("{error}"));
    let mut primary = pair.primary.connect("answers");
    for table in ["uniform_low", "all_frozen", "with_index", "toasted", "moving_hot_tail"] {
        primary.run(&format!("DELETE FROM {table} WHERE hashint4(id) % 100 = 3"));
    }
    primary.run("VACUUM (TRUNCATE off) with_index, uniform_low, deletes, clustered_updates");
    let [mut primary, mut standby] = pair.connect("answers");
    let toast: String =
        primary.value("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'toasted'");
    let tables = SHAPES.iter().map(|shape| shape.name).chain([&*toast, "pg_class", "pg_proc"]);
    for (table, mode) in tables.flat_map(|table| [(table, "stream"), (table, "sync")]) {
        for settings in ["RESET ALL", "SET vacuum_freeze_table_age = 0"] {
            primary.run(settings);
            standby.run(settings);
            for query in ANSWERS.map(|query| query.replace("$t", table).replace("$mode", mode)) {
                assert_eq!(
                    standby.rows(&query),
                    primary.rows(&query),
                    "standby and primary: {settings}: {query}"
                );
            }
        }
    }
    pair.standby.assert_well();
}

#[test]
fn a_standby_is_in_recovery_and_reads_only() {
    make_striped(&mut pair().primary.new_database("recovery"), "t", 300);
    let [_, mut standby] = pair().connect("recovery");
    assert_eq!(standby.row("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')"), "t|on");
    // SERIALIZABLE and writing are what a standby refuses.
    standby.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    let counts = standby.row("SELECT rel_pages, scanned_pages, live_tuples FROM vacuum_skip_scan('t', 1)");
    assert_eq!(counts, "300|150|150", "a scan in a read-only transaction of a standby");
    standby.run("COMMIT; SET skip_pages_threshold = 1");
    assert_eq!(
        standby.row("SELECT threshold, scanned_pages FROM vacuum_skip_scan('t')"),
        "1|150",
        "after SET"
    );
}

#[test]
fn an_unlogged_table_has_no_data_on_a_standby() {
    let mut primary = pair().primary.new_database("unlogged");
    primary.run("CREATE UNLOGGED TABLE u AS SELECT 1 AS i");
    let [mut primary, mut standby] = pair().connect("unlogged");
    for query in ANSWERS.map(|query| query.replace("$t", "u").replace("$mode", "stream")) {
        let failure = standby.failure(&query);
        let expected = ("0A000", "cannot access temporary or unlogged relations during recovery");
        assert_eq!((&*failure.code, &*failure.message), expected, "{query}");
        primary.run(&query);
    }
}

#[test]
fn what_changed_on_the_primary_is_seen_on_the_standby() {
    let mut primary = pair().primary.new_database("changes");
    make_striped(&mut primary, "t", 300);
    let scanned = "SELECT rel_pages, scanned_pages FROM vacuum_skip_scan('t', 1)";
    for (change, expected) in [
        ("VACUUM (FREEZE) t", "300|1"),
        ("UPDATE t SET v = 2 WHERE id = 10", "300|2"),
        ("DELETE FROM t WHERE id > 250", "300|51"),
        // It truncates, and clears the bits past the end in the map.
        ("VACUUM t", "250|1"),
        ("INSERT INTO t SELECT i, 0, repeat('x', 700) FROM generate_series(1, 20) AS i", "270|20"),
        ("TRUNCATE t", "0|0"),
    ] {
        primary.run(change);
        let [_, mut standby] = pair().connect("changes");
        assert_eq!(primary.row(scanned), expected, "primary, after {change}");
        assert_eq!(standby.row(scanned), expected, "standby, after {change}");
    }
}

#[test]
fn scans_beside_replay_account_for_every_page() {
    let mut primary = pair().primary.new_database("replay");
    make_striped(&mut primary, "t", 1500);
    let [primary, mut standby] = pair().connect("replay");
    let writer = primary.start(
        "DO $$ BEGIN
           FOR i IN 1..300 LOOP
             UPDATE t SET v = v + 1 WHERE id % 97 = i % 97;
             INSERT INTO t SELECT 10000 + n, 0, repeat('y', 700) FROM generate_series(1, 30) AS n;
             COMMIT;
           END LOOP;
         END $$",
    );
    let mut sizes = Vec::new();
    while !writer.is_finished() {
        let scan =
            "SELECT scanned_pages + skipped_pages - rel_pages, rel_pages FROM vacuum_skip_scan('t', 2)";
        let scan = standby.row(scan);
        let (missing, pages) = scan.split_once('|').unwrap_or_default();
        assert_eq!(missing, "0", "scanned + skipped pages - all pages");
        sizes.push(pages.to_owned());
    }
    let (_, result) = writer.finish();
    result.unwrap_or_else(|failure| panic!("the writer: {failure}"));
    sizes.dedup();
    assert!(sizes.len() > 5, "the table's sizes while it was scanned: {sizes:?}");
    pair().standby.assert_well();
}

#[test]
fn a_scan_on_a_standby_can_be_cancelled() {
    make_striped(&mut pair().primary.new_database("cancel"), "t", 1500);
    let [_, mut standby] = pair().connect("cancel");
    standby.run("SET statement_timeout = '300ms'");
    let scans =
        "SELECT count(*) FROM generate_series(1, 1000000000) AS i, LATERAL vacuum_skip_scan('t', 1 + i % 40)";
    for _ in 0..3 {
        assert_eq!(standby.failure(scans).code, "57014", "scans without end");
    }
    standby.run("RESET statement_timeout; SELECT FROM vacuum_skip_scan('t')");
    pair().standby.assert_well();
}

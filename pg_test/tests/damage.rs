//! Files that lie: broken pages, missing and shortened files, garbage in the
//! visibility map.
//!
//! Every function either answers or raises an error that names what is wrong.
//! The server does not crash, and the session goes on.

use std::os::unix::fs::FileExt;

use once_cell::sync::OnceCell;
use vacuum_skip_pg_test::tables::{make_slow, make_striped, wait_for_scan};
use vacuum_skip_pg_test::{Server, Session};

static SERVER: OnceCell<Server> = OnceCell::new();

fn server() -> &'static Server {
    let server = SERVER.get_or_try_init(|| Server::start(&[]));
    server.unwrap_or_else(|error| panic!("{error}"))
}

/// How many rows a table has of which every page has one and every second must
/// be scanned.
const PAGES: u32 = 300;

/// A database with such a table, `t`.
fn striped_table(database: &str) -> Session {
    let mut session = server().new_database(database);
    make_striped(&mut session, "t", PAGES);
    session
}

const SCAN: &str = "SELECT rel_pages, scanned_pages, new_pages, live_tuples FROM vacuum_skip_scan('t', 1)";
const PLAN: &str = "SELECT rel_pages, scanned_pages FROM vacuum_skip_plan('t', '{1}')";

/// What needs no heap page must say what it said before.
fn assert_the_map_is_read(session: &mut Session) {
    assert_eq!(session.row(PLAN), "300|150", "the plan of a table with a broken page");
    let ranges: u32 = session.value("SELECT count(*) FROM vacuum_skip_ranges('t', 1)");
    assert_eq!(ranges, PAGES, "ranges of a table with a broken page");
    let gaps = session.row("SELECT * FROM vacuum_skip_gaps('t')");
    assert_eq!(gaps, "1|1|150|150", "gaps of a table with a broken page");
    let map = session.rows("SELECT vacuum_skip_map('t', 1)");
    assert_eq!(map[0], "t: threshold 1 reads 150 of 300 pages (50.0 %)", "map of a table with a broken page");
}

#[test]
fn a_broken_page_header_ends_a_scan_and_no_more() {
    let mut session = striped_table("header");
    // pd_lower, pd_upper and pd_special of a block that must be scanned.
    server().overwrite(&mut session, "t", 151, 12, &[0xff; 6]);
    for mode in ["stream", "sync"] {
        let failure = session.failure(&format!("SELECT vacuum_skip_scan('t', 1, '{mode}')"));
        assert_eq!(failure.code, "XX001", "{mode}: {failure}");
        let named = failure.message.starts_with("invalid page in block 151 of relation");
        assert!(named, "{mode}: {failure}");
        assert_the_map_is_read(&mut session);
        // Blocks that no longer have to be read do no harm.
        let rows = session.rows("SELECT action FROM vacuum_skip_ranges('t', 1) WHERE first_block = 151");
        assert_eq!(rows, ["scan"], "{mode}: what is to be done with the broken page");
    }
    session.take_warnings();
    server().assert_well();
}

#[test]
fn zero_damaged_pages_counts_a_broken_page_as_new() {
    let mut session = striped_table("zeroed");
    server().overwrite(&mut session, "t", 151, 12, &[0xff; 6]);
    for mode in ["stream", "sync"] {
        server().evict(&mut session, "t");
        session.run("SET zero_damaged_pages = on");
        session.run(&format!("SET vacuum_skip.read_mode = {mode}"));
        assert_eq!(session.row(SCAN), "300|150|1|149", "{mode}: the scan of a table with a zeroed page");
        let warnings = session.take_warnings();
        let zeroed = warnings.iter().filter(|warning| warning.message.ends_with("zeroing out page"));
        assert_eq!(zeroed.count(), 1, "{mode}: warnings of zeroed pages in {warnings:?}");
    }
    server().assert_well();
}

/// Where a page's first line pointer is.
const FIRST_LINE_POINTER: u64 = 24;

/// A line pointer of a normal item.
fn line_pointer(offset: u32, length: u32) -> [u8; 4] {
    const NORMAL: u32 = 1;
    (offset | NORMAL << 15 | length << 17).to_ne_bytes()
}

#[test]
fn a_line_pointer_out_of_the_page_is_named() {
    let mut session = striped_table("line_pointer");
    // What the server checks of a page is right but for the checksum.
    session.run("SET ignore_checksum_failure = on");
    for (offset, length) in
        [(8000, 400), (8191, 30000), (32767, 32767), (8160, 33), (8192, 24), (4000, 4), (4000, 0), (4001, 40)]
    {
        let pointer = line_pointer(offset, length);
        server().overwrite(&mut session, "t", 151, FIRST_LINE_POINTER, &pointer);
        for mode in ["stream", "sync"] {
            let failure = session.failure(&format!("SELECT vacuum_skip_scan('t', 1, '{mode}')"));
            let expected = ("XX001", "invalid line pointer 1 in block 151 of relation \"t\"");
            assert_eq!(
                (&*failure.code, &*failure.message),
                expected,
                "{mode}: offset {offset}, length {length}"
            );
            assert_the_map_is_read(&mut session);
        }
    }
    session.take_warnings();
    server().assert_well();
}

#[test]
fn a_checksum_that_does_not_match_ends_a_scan() {
    let mut session = striped_table("checksum");
    server().overwrite(&mut session, "t", 151, 8000, b"not what was written");
    let failure = session.failure(SCAN);
    assert_eq!(failure.code, "XX001", "{failure}");
    assert_the_map_is_read(&mut session);
    session.run("SET ignore_checksum_failure = on");
    assert_eq!(session.row(SCAN), "300|150|0|150", "the scan that ignores the checksum");
    session.take_warnings();
    server().assert_well();
}

/// A session that has no file of the table open yet.
fn fresh(database: &str) -> Session {
    server().connect(database)
}

#[test]
fn without_a_map_every_page_is_scanned() {
    let mut session = striped_table("no_map");
    server().evict(&mut session, "t");
    let path: String = session.value("SELECT pg_relation_filepath('t')");
    let map = server().folder().join("data").join(format!("{path}_vm"));
    std::fs::remove_file(&map).unwrap_or_else(|error| panic!("{}: {error}", map.display()));
    let mut session = fresh("no_map");
    assert_eq!(session.row(SCAN), "300|300|0|300", "the scan without a map");
    assert_eq!(session.row(PLAN), "300|300", "the plan without a map");
    let ranges =
        session.rows("SELECT first_block, last_block, action, reason FROM vacuum_skip_ranges('t', 1)");
    assert_eq!(ranges, ["0|299|scan|not all-visible"], "ranges without a map");
    session.run("VACUUM (FREEZE) t");
    assert_eq!(session.row(PLAN), "300|1", "the plan after a vacuum made the map again");
    server().assert_well();
}

#[test]
fn an_empty_map_reads_as_no_map() {
    let mut session = striped_table("empty_map");
    server().evict(&mut session, "t");
    let map = server().file_of(&mut session, "t", "vm");
    map.set_len(0).unwrap_or_else(|error| panic!("{error}"));
    // A session that knows the map's size insists on it, as in VACUUM.
    let failure = session.failure(SCAN);
    let expected = ("XX001", "could not read blocks 0..0 in file");
    let found = (&*failure.code, &failure.message[..expected.1.len()]);
    assert_eq!(found, expected, "the scan in a session that has read the map: {failure}");
    let vacuum = session.failure("VACUUM t");
    assert_eq!(vacuum.code, failure.code, "VACUUM in the same session: {vacuum}");
    let mut session = fresh("empty_map");
    assert_eq!(session.row(SCAN), "300|300|0|300", "the scan with an empty map");
    assert_eq!(session.row(PLAN), "300|300", "the plan with an empty map");
    server().assert_well();
}

#[test]
fn garbage_in_the_map_reads_as_no_map() {
    let mut session = striped_table("garbage");
    // The server reads the map with RBM_ZERO_ON_ERROR: a page that does not
    // verify counts as zeros, with a warning.
    server().evict(&mut session, "t");
    let map = server().file_of(&mut session, "t", "vm");
    let garbage: Vec<u8> = (0..8192u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    map.write_all_at(&garbage, 0).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(session.row(PLAN), "300|300", "the plan with garbage in the map");
    assert_eq!(session.row(SCAN), "300|300|0|300", "the scan with garbage in the map");
    let warnings = session.take_warnings();
    assert!(!warnings.is_empty(), "no warning about the map");
    server().assert_well();
}

#[test]
fn a_map_that_says_too_much_is_believed() {
    let mut session = striped_table("lying_map");
    // Both bits of every page, those past the end included. Nothing but a
    // comparison with the heap could tell; VACUUM believes it, too.
    session.run("SET ignore_checksum_failure = on");
    server().evict(&mut session, "t");
    let map = server().file_of(&mut session, "t", "vm");
    map.write_all_at(&[0xff; 8192 - 24], 24).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(session.row(PLAN), "300|1", "the plan with all bits set");
    assert_eq!(session.row(SCAN), "300|1|0|1", "the scan with all bits set");
    let ranges =
        session.rows("SELECT first_block, last_block, action, reason FROM vacuum_skip_ranges('t', 1)");
    assert_eq!(ranges, ["0|298|skip|all-frozen", "299|299|scan|last block"], "ranges with all bits set");
    session.take_warnings();
    server().assert_well();
}

#[test]
fn a_file_that_shrinks_under_a_scan_is_an_error() {
    let (mut session, mut holder) = (server().new_database("shrinking"), server().connect("shrinking"));
    make_slow(&mut holder, &mut session, "slow");
    for mode in ["stream", "sync"] {
        let mut scanner = server().connect("shrinking");
        scanner.run(&format!("SET vacuum_skip.read_mode = {mode}; SET vacuum_buffer_usage_limit = '128kB'"));
        server().evict(&mut session, "slow");
        let file = server().file_of(&mut session, "slow", "main");
        let length = file.metadata().unwrap_or_else(|error| panic!("{error}")).len();
        let whole = std::fs::read(
            server()
                .folder()
                .join("data")
                .join(session.value::<String>("SELECT pg_relation_filepath('slow')")),
        );
        let pid = scanner.pid();
        let scan = scanner.start("SELECT rel_pages, scanned_pages FROM vacuum_skip_scan('slow')");
        wait_for_scan(&mut session, pid);
        file.set_len(length / 2).unwrap_or_else(|error| panic!("{error}"));
        let (mut scanner, result) = scan.finish();
        let failure = result.expect_err("the scan of a file of which half is gone");
        assert_eq!(failure.code, "XX001", "{mode}: {failure}");
        assert!(failure.message.starts_with("could not read blocks"), "{mode}: {failure}");
        let pages: u64 = scanner.value("SELECT rel_pages FROM vacuum_skip_scan('slow')");
        assert_eq!(pages, length / 2 / 8192, "{mode}: pages of the next scan");
        let whole = whole.unwrap_or_else(|error| panic!("{error}"));
        file.write_all_at(&whole, 0).unwrap_or_else(|error| panic!("{error}"));
    }
    server().assert_well();
}

#[test]
fn a_heap_file_that_ends_early_is_a_smaller_table() {
    let mut session = striped_table("short_heap");
    server().evict(&mut session, "t");
    let heap = server().file_of(&mut session, "t", "main");
    // Half a page at the end does not count.
    heap.set_len(200 * 8192 + 4096).unwrap_or_else(|error| panic!("{error}"));
    for mut session in [session, fresh("short_heap")] {
        assert_eq!(session.row(SCAN), "200|100|0|100", "the scan of what is left");
        assert_eq!(session.row(PLAN), "200|100", "the plan of what is left");
        let last: u32 = session.value("SELECT max(last_block) FROM vacuum_skip_ranges('t', 1)");
        assert_eq!(last, 199, "the last block of what is left");
    }
    server().assert_well();
}

#[test]
fn a_missing_heap_file_is_an_error() {
    let mut session = striped_table("no_heap");
    server().evict(&mut session, "t");
    let path: String = session.value("SELECT pg_relation_filepath('t')");
    let heap = server().folder().join("data").join(&path);
    std::fs::remove_file(&heap).unwrap_or_else(|error| panic!("{}: {error}", heap.display()));
    let mut session = fresh("no_heap");
    for query in [
        SCAN,
        PLAN,
        "SELECT vacuum_skip_ranges('t')",
        "SELECT vacuum_skip_map('t')",
        "SELECT vacuum_skip_gaps('t')",
    ] {
        let failure = session.failure(query);
        assert_eq!(failure.code, "58P01", "{query}: {failure}");
        assert!(failure.message.contains(&path), "{query}: {failure}");
    }
    server().assert_well();
}

#[test]
fn pages_never_initialized_are_counted_as_new() {
    let mut session = striped_table("new_pages");
    server().evict(&mut session, "t");
    let heap = server().file_of(&mut session, "t", "main");
    heap.set_len(u64::from(PAGES + 7) * 8192).unwrap_or_else(|error| panic!("{error}"));
    for mode in ["stream", "sync"] {
        session.run(&format!("SET vacuum_skip.read_mode = {mode}"));
        assert_eq!(session.row(SCAN), "307|157|7|150", "{mode}: the scan of a table with 7 new pages");
    }
    assert_eq!(session.row(PLAN), "307|157", "the plan of a table with 7 new pages");
    let free = session.row("SELECT free_bytes FROM vacuum_skip_scan('t', 2147483647)");
    let pgstattuple = session.row("SELECT free_space FROM pgstattuple('t')");
    assert_eq!(free, pgstattuple, "bytes free on a table with new pages");
    server().assert_well();
}

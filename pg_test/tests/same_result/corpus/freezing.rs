//! What is frozen, and what must be read for it.

use super::{Case, INDEXED, MODIFIED, PLAIN, case};

/// Locks of a transaction and of its subtransactions share a MultiXactId.
const MULTIXACTS: &str =
    "CREATE TABLE $t AS SELECT * FROM filled(2000); CREATE INDEX ON $t (id); VACUUM $t; BEGIN;
     SELECT FROM $t WHERE id % 100 = 1 FOR KEY SHARE; SAVEPOINT a;
     UPDATE $t SET v = v + 1 WHERE id % 200 = 1; SAVEPOINT b; SELECT FROM $t WHERE id % 50 = 1 FOR SHARE;
     ROLLBACK TO b; DELETE FROM $t WHERE id % 500 = 1; COMMIT; BEGIN;
     SELECT FROM $t WHERE id % 70 = 3 FOR SHARE; SAVEPOINT a; SELECT FROM $t WHERE id % 70 = 3 FOR UPDATE;
     COMMIT; BEGIN; SELECT FROM $t WHERE id % 90 = 5 FOR KEY SHARE; SAVEPOINT a;
     DELETE FROM $t WHERE id % 90 = 5; ROLLBACK";

/// As if the table had not been vacuumed for 1.7 billion transactions: beyond
/// vacuum_failsafe_age.
const LONG_AGO: &str =
    "UPDATE pg_class SET relfrozenxid = ((pg_current_xact_id()::text::bigint - 1700000000 + 4294967296)
       % 4294967296)::text::xid WHERE oid = '$t'::regclass";

/// A row a page, and so many pages that VACUUM scans some of them eagerly:
/// that takes two regions of 4096.
///
/// Where the first region ends is chosen at random, and with it how many pages
/// it may fail to freeze before it gives up. The two tables are such that it
/// does not matter if vacuum_max_eager_freeze_failure_rate is 1, so that every
/// region may fail at least once. Here every page can be frozen; the scan is
/// eager from the first page to where a fifth of the pages have been frozen.
const EAGER_SUCCESS: &str =
    "CREATE TABLE $t (id int, filler text); ALTER TABLE $t ALTER filler SET STORAGE plain;
     INSERT INTO $t SELECT i, repeat('x', 4100) FROM generate_series(1, 8300) i; VACUUM $t;
     CALL pass_transactions(20); UPDATE $t SET id = -id WHERE id = 5000";

/// Here the first 5000 pages are frozen, more than any first region has. Of the
/// others none but the first can be frozen, and they are fewer than a region
/// may fail to freeze. The first is older, so that relfrozenxid is older than
/// what can be frozen.
const EAGER_FAILURE: &str =
    "CREATE TABLE $t (id int, filler text); ALTER TABLE $t ALTER filler SET STORAGE plain;
     INSERT INTO $t SELECT i, repeat('x', 4100) FROM generate_series(1, 5000) i; VACUUM (FREEZE) $t;
     INSERT INTO $t SELECT 0, repeat('x', 4100); CALL pass_transactions(200);
     INSERT INTO $t SELECT i, repeat('x', 4100) FROM generate_series(5001, 8300) i; VACUUM $t";

pub const CASES: &[Case] = &[
    case("multixacts", MULTIXACTS, PLAIN),
    case("multixacts_frozen", MULTIXACTS, "VACUUM (VERBOSE, FREEZE) $t").tells("new relminmxid"),
    case("aggressive_by_multixact_age", MULTIXACTS, PLAIN)
        .before("SET vacuum_multixact_freeze_table_age = 0; SET vacuum_multixact_freeze_min_age = 0")
        .tells("aggressively"),
    case("freeze_option", INDEXED, "VACUUM (VERBOSE, FREEZE) $t").tells("new relfrozenxid"),
    case("freeze_twice_modified", MODIFIED, "VACUUM (FREEZE, VERBOSE) $t")
        .before("VACUUM (FREEZE) $t; UPDATE $t SET v = v + 1 WHERE hashint4(id) % 222 = 0"),
    case("aggressive_by_age", INDEXED, PLAIN).before("SET vacuum_freeze_table_age = 0").tells("aggressively"),
    case(
        "partly_freezable",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); CREATE INDEX ON $t (id);
         DELETE FROM $t WHERE id % 80 = 0; CALL pass_transactions(50);
         UPDATE $t SET v = v + 1 WHERE id % 60 = 0; INSERT INTO $t SELECT * FROM filled(500)",
        PLAIN,
    )
    .before("SELECT freeze_before((SELECT xmin FROM $t ORDER BY ctid DESC LIMIT 1))")
    .tells("new relfrozenxid"),
    case("disable_page_skipping", INDEXED, "VACUUM (VERBOSE, DISABLE_PAGE_SKIPPING) $t")
        .tells("(100.00% of total), 0 eagerly"),
    case(
        "eager_success",
        EAGER_SUCCESS,
        "SET vacuum_max_eager_freeze_failure_rate = 0; VACUUM (VERBOSE) $t;
         SET vacuum_max_eager_freeze_failure_rate = 1; VACUUM (VERBOSE) $t",
    )
    .before("SET vacuum_freeze_min_age = 0")
    .tells("freezing 1659 eagerly scanned blocks"),
    case("eager_failure", EAGER_FAILURE, PLAIN)
        .before(
            "SET vacuum_max_eager_freeze_failure_rate = 1;
         SELECT freeze_before((SELECT xmin FROM $t ORDER BY ctid DESC LIMIT 1))",
        )
        .tells("3300 eagerly scanned"),
    case("failsafe", INDEXED, PLAIN).before(LONG_AGO).tells("index scan bypassed by failsafe"),
    case("failsafe_by_multixact_age", INDEXED, PLAIN)
        .before("UPDATE pg_class SET relminmxid = '2500000000' WHERE oid = '$t'::regclass")
        .tells("index scan bypassed by failsafe"),
];

//! What can be in a table, and who else uses it.

use super::forged::{add_new_and_empty_pages, add_new_and_empty_tail, falsify_map};
use super::{Case, INDEXED, MODIFIED, PLAIN, TOASTED, case};

const DEAD_TAIL: &str = "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); VACUUM $t;
     DELETE FROM $t WHERE id > 3000";

/// Four rows a page, so few that reading a page does not prune it.
const PINNED: &str = "CREATE TABLE $t (id int, filler text);
     INSERT INTO $t SELECT i, repeat('x', 1700) FROM generate_series(1, 400) i; VACUUM $t;
     DELETE FROM $t WHERE id IN (1, 2, 30, 50)";

/// An open cursor keeps a pin on its page.
const CURSOR: &str = "BEGIN; DECLARE c CURSOR FOR SELECT * FROM $t; FETCH 1 FROM c";

pub const CASES: &[Case] = &[
    case("mixed_gaps", MODIFIED, PLAIN),
    case("modified_since_checkpoint", MODIFIED, PLAIN)
        .before("UPDATE $t SET v = v + 1 WHERE hashint4(id) % 111 = 5; DELETE FROM $t WHERE id % 777 = 0"),
    case(
        "nothing_vacuumed",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); DELETE FROM $t WHERE id % 3 = 0",
        PLAIN,
    ),
    case("all_frozen", "CREATE TABLE $t AS SELECT * FROM filled(2000); VACUUM (FREEZE) $t", PLAIN),
    case("all_visible", "CREATE TABLE $t AS SELECT * FROM filled(2000); VACUUM $t", PLAIN),
    case(
        "frozen_and_visible",
        "CREATE TABLE $t AS SELECT * FROM filled(1500); VACUUM (FREEZE) $t;
         INSERT INTO $t SELECT * FROM filled(1500); VACUUM $t;
         UPDATE $t SET v = v + 1 WHERE hashint4(id) % 150 = 0",
        PLAIN,
    ),
    case("one_page", "CREATE TABLE $t AS SELECT * FROM filled(5)", PLAIN),
    case("no_page", "CREATE TABLE $t (id int PRIMARY KEY)", PLAIN),
    case("no_column", "CREATE TABLE $t (); INSERT INTO $t SELECT FROM generate_series(1, 2000)", PLAIN),
    case(
        "hot_chains",
        "CREATE TABLE $t (id int PRIMARY KEY, v int, filler text) WITH (fillfactor = 60);
         INSERT INTO $t SELECT * FROM filled(2000); VACUUM $t; UPDATE $t SET v = v + 1 WHERE id % 9 = 0;
         UPDATE $t SET v = v + 1 WHERE id % 18 = 0; UPDATE $t SET v = v + 1 WHERE id % 36 = 0;
         DELETE FROM $t WHERE id % 72 = 0; BEGIN; UPDATE $t SET v = v + 1 WHERE id % 45 = 0; ROLLBACK;
         UPDATE $t SET id = id + 100000 WHERE id % 99 = 0",
        PLAIN,
    ),
    case(
        "aborted",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); CREATE INDEX ON $t (id); VACUUM $t; BEGIN;
         INSERT INTO $t SELECT * FROM filled(500); ROLLBACK; BEGIN;
         UPDATE $t SET v = v + 1 WHERE id % 40 = 0; ROLLBACK; BEGIN; DELETE FROM $t WHERE id % 50 = 0;
         ROLLBACK; BEGIN; SAVEPOINT a; INSERT INTO $t SELECT * FROM filled(100); ROLLBACK TO a;
         INSERT INTO $t SELECT * FROM filled(100); COMMIT; INSERT INTO $t SELECT * FROM filled(100)",
        PLAIN,
    ),
    case(
        "only_aborted",
        "CREATE TABLE $t (id int, v int, filler text); BEGIN; INSERT INTO $t SELECT * FROM filled(1000);
         ROLLBACK",
        PLAIN,
    )
    .tells("50 removed, 0 remain"),
    case(
        "row_locks",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); VACUUM $t;
         SELECT FROM $t WHERE id % 40 = 0 FOR UPDATE; SELECT FROM $t WHERE id % 70 = 0 FOR KEY SHARE",
        PLAIN,
    ),
    case(
        "dead_items_left",
        "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); CREATE INDEX ON $t (v);
         UPDATE $t SET v = v + 1 WHERE hashint4(id) % 50 = 0; VACUUM (INDEX_CLEANUP off, TRUNCATE off) $t;
         UPDATE $t SET v = v + 1 WHERE hashint4(id) % 333 = 1",
        PLAIN,
    )
    .tells("index scan needed"),
    case(
        "dead_items_and_no_index",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); CREATE INDEX $t_id ON $t (id);
         DELETE FROM $t WHERE hashint4(id) % 50 = 0; VACUUM (INDEX_CLEANUP off, TRUNCATE off) $t;
         DROP INDEX $t_id; DELETE FROM $t WHERE hashint4(id) % 333 = 1",
        PLAIN,
    ),
    case("dead_tail", DEAD_TAIL, PLAIN).tells("50 removed, 150 remain"),
    case("all_dead", "CREATE TABLE $t AS SELECT * FROM filled(2000); DELETE FROM $t", PLAIN)
        .tells("128 removed, 0 remain"),
    case(
        "all_dead_and_indexed",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); CREATE INDEX ON $t (id); DELETE FROM $t",
        PLAIN,
    )
    .tells("128 removed, 0 remain"),
    case("dead_tail_in_use", DEAD_TAIL, PLAIN)
        .beside("BEGIN; LOCK TABLE $t IN ACCESS SHARE MODE")
        .tells("stopping truncate due to conflicting lock request"),
    case("truncate_off", DEAD_TAIL, "VACUUM (VERBOSE, TRUNCATE off) $t").tells("0 removed, 200 remain"),
    case("truncate_off_by_setting", DEAD_TAIL, PLAIN)
        .before("SET vacuum_truncate = off")
        .tells("0 removed, 200 remain"),
    case(
        "truncate_off_by_table",
        "CREATE TABLE $t WITH (vacuum_truncate = off) AS SELECT * FROM filled(2000);
         DELETE FROM $t WHERE id > 1000",
        PLAIN,
    )
    .tells("0 removed, 128 remain"),
    case(
        "new_and_empty_pages",
        "CREATE TABLE $t AS SELECT * FROM filled(1000); CREATE INDEX ON $t (id); VACUUM $t",
        PLAIN,
    )
    .pages(add_new_and_empty_pages),
    case("new_and_empty_tail", "CREATE TABLE $t AS SELECT * FROM filled(100); VACUUM $t", PLAIN)
        .pages(add_new_and_empty_tail)
        .tells("6 removed, 5 remain"),
    case(
        "wrong_bits",
        "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id);
         DELETE FROM $t WHERE hashint4(id) % 50 = 0; VACUUM (INDEX_CLEANUP off, TRUNCATE off) $t;
         DELETE FROM $t WHERE hashint4(id) % 333 = 1",
        "VACUUM (VERBOSE, DISABLE_PAGE_SKIPPING) $t",
    )
    .pages(falsify_map)
    .tells("WARNING: page"),
    case("toasted", TOASTED, PLAIN).tells("pg_toast"),
    case(
        "unlogged",
        "CREATE UNLOGGED TABLE $t (id int PRIMARY KEY, v int, filler text);
         INSERT INTO $t SELECT * FROM filled(2000); VACUUM $t; DELETE FROM $t WHERE hashint4(id) % 60 = 0",
        PLAIN,
    ),
    case(
        "materialized",
        "CREATE MATERIALIZED VIEW $t AS SELECT * FROM filled(2000); CREATE UNIQUE INDEX ON $t (id)",
        PLAIN,
    ),
    case("temporary", "", PLAIN).within("temporary").before(
        "CREATE TEMPORARY TABLE $t AS SELECT * FROM filled(3000); CREATE INDEX ON $t (id);
         CREATE INDEX ON $t USING hash (v); VACUUM $t;
         DELETE FROM $t WHERE hashint4(id) % 80 = 0 OR id > 2500;
         UPDATE $t SET v = v + 1 WHERE hashint4(id) % 90 = 3",
    ),
];

/// Other sessions are in the middle of something.
pub const IN_COMPANY: &[Case] = &[
    case("recently_dead", INDEXED, PLAIN)
        .beside("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM $t WHERE id < 10")
        .before(
            "DELETE FROM $t WHERE hashint4(id) % 77 = 0;
             UPDATE $t SET v = v + 1 WHERE id BETWEEN 100 AND 120",
        )
        .tells("69 are dead but not yet removable"),
    case("in_progress", INDEXED, PLAIN).beside(
        "BEGIN; INSERT INTO $t SELECT * FROM filled(200); DELETE FROM $t WHERE hashint4(id) % 99 = 0;
         UPDATE $t SET v = v + 1 WHERE id BETWEEN 300 AND 320; SELECT FROM $t WHERE id % 400 = 2 FOR UPDATE",
    ),
    case("pinned_page", PINNED, PLAIN).beside(CURSOR).tells("tuples missed: 2 dead from 1 pages"),
    case("pinned_page_and_index", PINNED, PLAIN)
        .beside(CURSOR)
        .before("CREATE INDEX ON $t (id)")
        .tells("tuples missed: 2 dead from 1 pages"),
    case("pinned_page_when_aggressive", PINNED, PLAIN)
        .beside(CURSOR)
        .before("SET vacuum_freeze_table_age = 0")
        .tells("tuples missed: 2 dead from 1 pages"),
    case(
        "pinned_page_with_multixacts",
        "CREATE TABLE $t (id int, filler text);
         INSERT INTO $t SELECT i, repeat('x', 1700) FROM generate_series(1, 400) i; BEGIN;
         SELECT FROM $t WHERE id % 20 = 1 FOR KEY SHARE; SAVEPOINT a;
         SELECT FROM $t WHERE id % 20 = 1 FOR SHARE; COMMIT",
        PLAIN,
    )
    .beside(CURSOR),
    case(
        "pinned_page_with_dead_items_and_no_index",
        "CREATE TABLE $t (id int, filler text); CREATE INDEX $t_id ON $t (id);
         INSERT INTO $t SELECT i, repeat('x', 1700) FROM generate_series(1, 400) i;
         DELETE FROM $t WHERE id IN (1, 2, 30, 50); VACUUM (INDEX_CLEANUP off) $t; DROP INDEX $t_id",
        PLAIN,
    )
    .beside(CURSOR)
    .tells("tuples missed: 2 dead from 1 pages"),
    case(
        "pinned_page_with_dead_items",
        "CREATE TABLE $t (id int PRIMARY KEY, filler text);
         INSERT INTO $t SELECT i, repeat('x', 1700) FROM generate_series(1, 400) i;
         DELETE FROM $t WHERE id IN (1, 2, 30, 50); VACUUM (INDEX_CLEANUP off) $t;
         DELETE FROM $t WHERE id = 3",
        "VACUUM (VERBOSE, INDEX_CLEANUP on) $t",
    )
    .beside(CURSOR)
    .tells("tuples missed: 1 dead from 1 pages"),
    case(
        "prepared_transaction",
        "CREATE TABLE $t AS SELECT * FROM filled(2000); CREATE INDEX ON $t (id); VACUUM $t",
        PLAIN,
    )
    .before(
        "BEGIN; INSERT INTO $t SELECT * FROM filled(100); DELETE FROM $t WHERE id % 77 = 0;
         SELECT FROM $t WHERE id % 80 = 2 FOR UPDATE; PREPARE TRANSACTION '$t';
         DELETE FROM $t WHERE id BETWEEN 303 AND 307",
    )
    .tells("5 are dead but not yet removable"),
    // Nothing but the last phase changes these pages.
    case(
        "dead_items_beside_prepared_transaction",
        "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id);
         DELETE FROM $t WHERE id % 50 = 0; VACUUM (INDEX_CLEANUP off, TRUNCATE off) $t",
        PLAIN,
    )
    .before("BEGIN; DELETE FROM $t WHERE id % 20 = 7; PREPARE TRANSACTION '$t'; CHECKPOINT")
    .tells("index scan needed"),
];

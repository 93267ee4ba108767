//! Indexes of every kind, and when and how they are vacuumed.

use super::{Buffers, Case, INDEXED, PLAIN, case};

/// Dead items on fewer than 2 % of the pages.
const FEW_DEAD: &str = "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); VACUUM $t;
     DELETE FROM $t WHERE id IN (1200, 1210)";

/// Some 45 pages with an index of every kind, and a third of the rows dead.
const SIX_KINDS: &str = "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t (v);
     CREATE INDEX ON $t USING hash (id); CREATE INDEX ON $t USING gin (tags);
     CREATE INDEX ON $t USING gist (place); CREATE INDEX ON $t USING brin (id) WITH (pages_per_range = 4);
     CREATE INDEX ON $t USING spgist (word); VACUUM $t;
     DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)";

pub const CASES: &[Case] = &[
    case(
        "one_btree",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t (v, id); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case(
        "one_hash",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING hash (v); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case(
        "one_gin",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING gin (tags); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case(
        "one_gist",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING gist (place); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case(
        "one_brin",
        "CREATE TABLE $t AS SELECT * FROM items(2000);
         CREATE INDEX ON $t USING brin (id) WITH (pages_per_range = 2); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case(
        "one_spgist",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING spgist (word); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case(
        "five_btree",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE UNIQUE INDEX ON $t (id);
         CREATE INDEX ON $t (v); CREATE INDEX ON $t (word text_pattern_ops); CREATE INDEX ON $t ((v + id));
         CREATE INDEX ON $t (v) WHERE id % 2 = 0; VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300",
        PLAIN,
    ),
    case(
        "five_hash",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING hash (id);
         CREATE INDEX ON $t USING hash (v); CREATE INDEX ON $t USING hash (word);
         CREATE INDEX ON $t USING hash ((v + id)); CREATE INDEX ON $t USING hash (v) WHERE id % 2 = 0;
         VACUUM $t; DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300",
        PLAIN,
    ),
    case(
        "five_gin",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING gin (tags);
         CREATE INDEX ON $t USING gin (tags) WITH (fastupdate = off);
         CREATE INDEX ON $t USING gin (to_tsvector('simple', word));
         CREATE INDEX ON $t USING gin ((ARRAY[v, id % 13]));
         CREATE INDEX ON $t USING gin (tags) WHERE id % 2 = 0; VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(100)",
        PLAIN,
    ),
    case(
        "five_gist",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING gist (place);
         CREATE INDEX ON $t USING gist (circle(place, 2));
         CREATE INDEX ON $t USING gist (box(place, point(0, 0)));
         CREATE INDEX ON $t USING gist (to_tsvector('simple', word));
         CREATE INDEX ON $t USING gist (int4range(0, id)); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300",
        PLAIN,
    ),
    case(
        "five_brin",
        "CREATE TABLE $t AS SELECT * FROM items(2000);
         CREATE INDEX ON $t USING brin (id) WITH (pages_per_range = 1);
         CREATE INDEX ON $t USING brin (v) WITH (pages_per_range = 2); CREATE INDEX ON $t USING brin (word);
         CREATE INDEX ON $t USING brin (id int4_bloom_ops);
         CREATE INDEX ON $t USING brin (v int4_minmax_multi_ops); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300;
         INSERT INTO $t SELECT * FROM items(1000)",
        PLAIN,
    ),
    case(
        "five_spgist",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING spgist (word);
         CREATE INDEX ON $t USING spgist (place); CREATE INDEX ON $t USING spgist (place kd_point_ops);
         CREATE INDEX ON $t USING spgist (int4range(0, id));
         CREATE INDEX ON $t USING spgist (box(place, point(0, 0))); VACUUM $t;
         DELETE FROM $t WHERE id % 7 = 0 OR id BETWEEN 900 AND 1300; INSERT INTO $t SELECT * FROM items(300)",
        PLAIN,
    ),
    case("six_kinds", SIX_KINDS, PLAIN).tells("index scan needed"),
    case(
        "cleanup_alone",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t (v);
         CREATE INDEX ON $t USING hash (id); CREATE INDEX ON $t USING gin (tags);
         CREATE INDEX ON $t USING gist (place);
         CREATE INDEX ON $t USING brin (id) WITH (pages_per_range = 4);
         CREATE INDEX ON $t USING spgist (word); VACUUM $t; INSERT INTO $t SELECT * FROM items(1000)",
        PLAIN,
    )
    .tells("index scan not needed"),
    case(
        "deleted_leaves",
        "CREATE TABLE $t AS SELECT i AS id FROM generate_series(1, 20000) i; CREATE INDEX ON $t (id);
         VACUUM $t; DELETE FROM $t WHERE id BETWEEN 4000 AND 15000",
        PLAIN,
    )
    .tells("newly deleted"),
    case(
        "recycled_leaves",
        "CREATE TABLE $t AS SELECT i AS id FROM generate_series(1, 20000) i; CREATE INDEX ON $t (id);
         DELETE FROM $t WHERE id BETWEEN 4000 AND 9000; VACUUM $t; CALL pass_transactions(3);
         DELETE FROM $t WHERE id BETWEEN 12000 AND 15000",
        PLAIN,
    )
    .tells("newly deleted"),
    case("index_cleanup_off", INDEXED, "VACUUM (VERBOSE, INDEX_CLEANUP off) $t")
        .tells("index scan bypassed:"),
    case("index_cleanup_on", FEW_DEAD, "VACUUM (VERBOSE, INDEX_CLEANUP on) $t").tells("index scan needed:"),
    case("index_cleanup_auto", FEW_DEAD, "VACUUM (VERBOSE, INDEX_CLEANUP auto) $t")
        .tells("index scan bypassed:"),
    // Dead items on 4 of 200 pages, and on 3: 2 % are not few.
    case(
        "dead_on_2_percent",
        "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); VACUUM $t;
         DELETE FROM $t WHERE id IN (400, 1200, 2000, 2800)",
        PLAIN,
    )
    .tells("index scan needed: 4 pages"),
    case(
        "dead_on_less",
        "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); VACUUM $t;
         DELETE FROM $t WHERE id IN (400, 1200, 2000)",
        PLAIN,
    )
    .tells("index scan bypassed: 3 pages"),
    // Where dead items stay, so must their pages.
    case(
        "dead_tail_and_index_cleanup_off",
        "CREATE TABLE $t AS SELECT * FROM filled(4000); CREATE INDEX ON $t (id); VACUUM $t;
         DELETE FROM $t WHERE id > 3000",
        "VACUUM (VERBOSE, INDEX_CLEANUP off) $t",
    )
    .tells("0 removed, 200 remain"),
    case(
        "index_cleanup_off_by_table",
        "CREATE TABLE $t WITH (vacuum_index_cleanup = off) AS SELECT * FROM filled(2000);
         CREATE INDEX ON $t (id); DELETE FROM $t WHERE id % 50 = 0",
        PLAIN,
    )
    .tells("index scan bypassed:"),
    case(
        "many_passes",
        "CREATE TABLE $t AS SELECT i AS id FROM generate_series(1, 500000) i; CREATE INDEX ON $t (id);
         DELETE FROM $t WHERE id % 9 = 0",
        PLAIN,
    )
    .before("SET maintenance_work_mem = '64kB'")
    .tells("index scan needed:"),
    case("parallel", SIX_KINDS, "VACUUM (VERBOSE, PARALLEL 2) $t")
        .before("SET min_parallel_index_scan_size = 0")
        .tells("launched 2 parallel vacuum workers for index vacuuming")
        .buffers(Buffers::HitsVary),
    case(
        "parallel_cleanup",
        "CREATE TABLE $t AS SELECT * FROM items(2000); CREATE INDEX ON $t USING gin (tags);
         CREATE INDEX ON $t USING brin (id); CREATE INDEX ON $t USING gist (place); VACUUM $t;
         INSERT INTO $t SELECT * FROM items(1000)",
        "VACUUM (VERBOSE, PARALLEL 2) $t",
    )
    .before("SET min_parallel_index_scan_size = 0")
    .tells("parallel vacuum workers for index cleanup")
    .buffers(Buffers::HitsVary),
    // Shared memory for dead items is more than 64 kB from the start: a pass for
    // each page that has any.
    case(
        "parallel_passes",
        "CREATE TABLE $t AS SELECT * FROM filled(1000); CREATE INDEX ON $t (id); CREATE INDEX ON $t (v);
         CREATE INDEX ON $t USING hash (id); VACUUM $t; DELETE FROM $t WHERE id IN (100, 101, 300, 500)",
        "VACUUM (VERBOSE, PARALLEL 2) $t",
    )
    .before("SET min_parallel_index_scan_size = 0; SET maintenance_work_mem = '64kB'")
    .tells("index scans: 4")
    .buffers(Buffers::HitsVary),
    case("parallel_off", SIX_KINDS, "VACUUM (VERBOSE, PARALLEL 0) $t")
        .before("SET min_parallel_index_scan_size = 0"),
    case("parallel_temporary", "", "VACUUM (VERBOSE, PARALLEL 2) $t")
        .within("temporary")
        .before(
            "SET min_parallel_index_scan_size = 0; CREATE TEMPORARY TABLE $t AS SELECT * FROM filled(1000);
         CREATE INDEX ON $t (id); CREATE INDEX ON $t (v); DELETE FROM $t WHERE id % 50 = 0",
        )
        .tells("cannot vacuum temporary tables in parallel"),
];

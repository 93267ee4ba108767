//! Other options and settings, and whatever else can be vacuumed at once.

use super::{Buffers, Case, INDEXED, PLAIN, TOASTED, case};

pub const CASES: &[Case] = &[
    case("buffer_ring", INDEXED, "VACUUM (VERBOSE, BUFFER_USAGE_LIMIT '128kB') $t").buffers(Buffers::Vary),
    case("buffer_ring_by_setting", INDEXED, PLAIN)
        .before("SET vacuum_buffer_usage_limit = '256kB'")
        .buffers(Buffers::Vary),
    case("cost_delay", INDEXED, PLAIN).before("SET vacuum_cost_delay = 1; SET vacuum_cost_limit = 100"),
    case("cost_delay_timed", INDEXED, PLAIN)
        .before("SET vacuum_cost_delay = 1; SET track_cost_delay_timing = on")
        .tells("delay time"),
    case("io_timed", INDEXED, PLAIN).before("SET track_io_timing = on").tells("I/O timings"),
    case("read_one_by_one", INDEXED, PLAIN)
        .before("SET maintenance_io_concurrency = 0; SET io_combine_limit = 1"),
    case("analyze_option", INDEXED, "VACUUM (VERBOSE, ANALYZE) $t").tells("finished analyzing"),
    case("analyze_column", INDEXED, "VACUUM (VERBOSE, ANALYZE) $t (id)").tells("finished analyzing"),
    case(
        "database_stats",
        INDEXED,
        "VACUUM (VERBOSE, SKIP_DATABASE_STATS) $t; VACUUM (VERBOSE, ONLY_DATABASE_STATS)",
    ),
    case("process_toast_off", TOASTED, "VACUUM (VERBOSE, PROCESS_TOAST off) $t"),
    case("process_main_off", TOASTED, "VACUUM (VERBOSE, PROCESS_MAIN off) $t").tells("pg_toast"),
    case(
        "partitioned",
        "CREATE TABLE $t (id int, v int, filler text) PARTITION BY RANGE (id);
         CREATE TABLE $t_1 PARTITION OF $t FOR VALUES FROM (0) TO (800);
         CREATE TABLE $t_2 PARTITION OF $t FOR VALUES FROM (800) TO (2000) PARTITION BY RANGE (id);
         CREATE TABLE $t_2_1 PARTITION OF $t_2 FOR VALUES FROM (800) TO (1500);
         CREATE TABLE $t_default PARTITION OF $t DEFAULT;
         CREATE TABLE $t_2_default PARTITION OF $t_2 DEFAULT; CREATE INDEX ON $t (id);
         INSERT INTO $t SELECT * FROM filled(2500); DELETE FROM $t WHERE hashint4(id) % 60 = 0",
        "VACUUM (VERBOSE, ANALYZE) $t; VACUUM (VERBOSE) ONLY $t",
    )
    .tells("partitioned_2_1\": index scans: 1"),
    case(
        "several_tables",
        "CREATE TABLE $t AS SELECT * FROM filled(1000); CREATE TABLE $t_b AS SELECT * FROM items(1000);
         CREATE TABLE $t_c () INHERITS ($t); INSERT INTO $t_c SELECT * FROM filled(300);
         CREATE INDEX ON $t_b (id); DELETE FROM $t WHERE id % 40 = 0; DELETE FROM $t_b WHERE id % 40 = 0",
        "VACUUM (VERBOSE) $t_b, $t",
    ),
    case(
        "catalogs",
        "CREATE TABLE $t (id int PRIMARY KEY, v text); ALTER TABLE $t ADD w int DEFAULT 1; DROP TABLE $t;
         CREATE TABLE $t (id int PRIMARY KEY, v text, w text); ANALYZE; ANALYZE; ALTER TABLE $t DROP v;
         CREATE VIEW $t_v AS TABLE $t",
        "VACUUM (VERBOSE) pg_class, pg_attribute, pg_type, pg_depend, pg_index, pg_statistic;
         VACUUM (VERBOSE, FREEZE) pg_proc; VACUUM (VERBOSE) pg_database, pg_shdepend",
    )
    .within("catalogs"),
    // Ours looks for labels. What that puts into caches the server needs too
    // when it comes to pg_seclabel.
    case(
        "whole_database",
        "CREATE TABLE $t AS SELECT * FROM filled(1000); CREATE INDEX ON $t (id); ANALYZE;
         DELETE FROM $t WHERE id % 40 = 0; CREATE TABLE $t_toasted AS SELECT repeat(md5('x'), 200) AS v;
         DROP TABLE $t_toasted",
        "VACUUM (VERBOSE)",
    )
    .within("whole_database")
    .before("SET enable_seqscan = off; SELECT FROM pg_seclabel WHERE objoid = 0 AND classoid = 0")
    .tells("finished vacuuming \"whole_database.public.whole_database"),
];

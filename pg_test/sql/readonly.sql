--
-- Looking changes nothing
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
CREATE EXTENSION IF NOT EXISTS pageinspect;
RESET client_min_messages;
CREATE SCHEMA vs_readonly;
SET search_path = vs_readonly, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set await_others :abs_srcdir '/include/await_others.sql'
\i :await_others

-- A table with a bit of everything: pages all-frozen and not all-visible, dead
-- tuples, and dead items
CREATE TABLE t (id int PRIMARY KEY, filler text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 2000) AS n;
ANALYZE t;
DELETE FROM t WHERE id BETWEEN 301 AND 320;
CALL await_others();
VACUUM (FREEZE, INDEX_CLEANUP OFF) t;
DELETE FROM t WHERE id BETWEEN 501 AND 520;
UPDATE t SET filler = 'y' WHERE id BETWEEN 701 AND 720;

-- All that is known of a table, but for hint bits, which every reader may set
CREATE FUNCTION state(rel regclass) RETURNS TABLE (what text, value text) LANGUAGE sql AS
$$
  SELECT 'pg_class', (relfilenode, relpages, reltuples, relallvisible, relallfrozen, relfrozenxid, relminmxid)::text
    FROM pg_class WHERE oid = rel
  UNION ALL
  SELECT 'size', string_agg(pg_relation_size(rel, fork)::text, ' ' ORDER BY fork)
    FROM unnest('{main,vm,fsm}'::text[]) AS fork
  UNION ALL
  SELECT 'visibility map', md5(string_agg((blkno, all_visible, all_frozen, pd_all_visible)::text, ' ' ORDER BY blkno))
    FROM pg_visibility(rel)
  UNION ALL
  SELECT 'summary', pg_visibility_map_summary(rel)::text
  UNION ALL
  SELECT 'page headers', md5(string_agg((block, lower, upper, special, prune_xid)::text, ' ' ORDER BY block))
    FROM generate_series(0, pg_relation_size(rel) / 8192 - 1) AS block, page_header(get_raw_page(rel::text, block))
  UNION ALL
  SELECT 'tuples', md5(string_agg((block, lp, lp_off, lp_flags, lp_len, t_xmin, t_xmax, t_ctid, t_data)::text, ' ' ORDER BY block, lp))
    FROM generate_series(0, pg_relation_size(rel) / 8192 - 1) AS block, heap_page_items(get_raw_page(rel::text, block))
  UNION ALL
  SELECT 'vacuums', (vacuum_count, autovacuum_count, analyze_count, last_vacuum, n_dead_tup)::text
    FROM pg_stat_all_tables WHERE relid = rel
$$;
CALL await_others();
SELECT pg_stat_force_next_flush();
CREATE TABLE before AS SELECT * FROM state('t');

-- There is something that could be changed: VACUUM would.
SELECT dead_tuples, dead_items, skipped_pages > 0 AS skipped FROM vacuum_skip_scan('t', 1);

-- In a transaction that may not change anything
BEGIN READ ONLY;
SELECT dead_tuples, dead_items FROM vacuum_skip_scan('t', 2147483647);
SELECT dead_tuples, dead_items FROM vacuum_skip_scan('t', 2147483647, 'sync');
SELECT count(*) FROM vacuum_skip_plan('t');
SELECT count(*) > 0 FROM vacuum_skip_ranges('t');
SELECT count(*) > 0 FROM vacuum_skip_map('t');
SELECT count(*) > 0 FROM vacuum_skip_gaps('t');
SELECT pg_current_xact_id_if_assigned();
COMMIT;
-- ... and in one that sees an old snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT dead_tuples, dead_items FROM vacuum_skip_scan('t', 2147483647);
COMMIT;

SELECT pg_stat_force_next_flush();
TABLE before EXCEPT SELECT * FROM state('t');
SELECT count(*) FROM before;

-- The test can fail: VACUUM changes all that.
CALL await_others();
VACUUM t;
SELECT what FROM (TABLE before EXCEPT SELECT * FROM state('t')) AS changed ORDER BY what COLLATE "C";

-- A second look sees the same.
SELECT count(DISTINCT s) FROM generate_series(1, 5),
  LATERAL (SELECT (threshold, aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges,
                   skippable_pages_scanned, skipped_all_visible, new_pages, empty_pages, live_tuples,
                   recently_dead_tuples, dead_tuples, dead_items, dead_bytes, free_bytes)::text AS s
             FROM vacuum_skip_scan('t', 4)) AS s;

-- Nor do they keep anything: no lock, and no pin, which would be a warning.
BEGIN;
SELECT count(*) FROM vacuum_skip_scan('t');
SELECT count(*) FROM vacuum_skip_plan('t');
SELECT count(*) > 0 FROM vacuum_skip_ranges('t');
SELECT count(*) > 0 FROM vacuum_skip_map('t');
SELECT count(*) > 0 FROM vacuum_skip_gaps('t');
SELECT mode FROM pg_locks WHERE locktype = 'relation' AND relation = 't'::regclass;
COMMIT;
-- ... if not all rows were asked for, too
SELECT (vacuum_skip_ranges('t', 1)).first_block LIMIT 1;
BEGIN;
DECLARE c CURSOR FOR SELECT (vacuum_skip_ranges('t', 1)).first_block;
FETCH 1 FROM c;
SELECT mode FROM pg_locks WHERE locktype = 'relation' AND relation = 't'::regclass;
DECLARE d CURSOR FOR SELECT threshold FROM vacuum_skip_plan('t');
FETCH 1 FROM d;
SELECT mode FROM pg_locks WHERE locktype = 'relation' AND relation = 't'::regclass;
DROP TABLE t;
CLOSE c;
CLOSE d;
ROLLBACK;
SELECT live_tuples FROM vacuum_skip_scan('t', 2147483647);

-- Nor the progress of the command around it, which it does not take over.
COPY (SELECT live_tuples, (SELECT count(*) FROM pg_stat_progress_copy WHERE pid = pg_backend_pid())
        FROM vacuum_skip_scan('t', 2147483647)) TO STDOUT;

-- A table that is gone halfway: what is left of its ranges is an error, not a
-- crash.
CREATE TABLE gone (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO gone SELECT n, repeat('x', 500) FROM generate_series(0, 1200) AS n;
CALL await_others();
VACUUM (FREEZE) gone;
DELETE FROM gone WHERE id % 2 = 0;
SELECT count(*) FROM vacuum_skip_ranges('gone', 1);
BEGIN;
DECLARE c CURSOR FOR SELECT vacuum_skip_ranges('gone', 1);
FETCH 2 FROM c;
DROP TABLE gone;
MOVE 900 FROM c;
\set VERBOSITY sqlstate
FETCH ALL FROM c;
\set VERBOSITY default
ROLLBACK;
SELECT count(*) FROM vacuum_skip_ranges('gone', 1);
-- One that is shorter halfway: what is no longer there is left out.
BEGIN;
DECLARE c CURSOR FOR SELECT vacuum_skip_ranges('gone', 1);
FETCH 2 FROM c;
TRUNCATE gone;
MOVE 900 FROM c;
MOVE 98 FROM c;
FETCH ALL FROM c;
CLOSE c;
SELECT count(*) FROM vacuum_skip_ranges('gone', 1);
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA vs_readonly CASCADE;
DROP EXTENSION vacuum_skip, pg_visibility, pageinspect;

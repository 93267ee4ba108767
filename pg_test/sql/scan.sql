--
-- vacuum_skip_scan: what it counts on the pages that it reads
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
CREATE EXTENSION IF NOT EXISTS pgstattuple;
CREATE EXTENSION IF NOT EXISTS pageinspect;
RESET client_min_messages;
CREATE SCHEMA vs_scan;
SET search_path = vs_scan, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set await_others :abs_srcdir '/include/await_others.sql'
\i :await_others

-- A full scan beside pgstattuple, which counts the same things, and beside
-- pageinspect, which shows line pointers
CREATE FUNCTION counts(rel regclass)
RETURNS TABLE (live bigint, recently_dead bigint, dead bigint, dead_items bigint, agree boolean) LANGUAGE sql AS
$$
  SELECT s.live_tuples, s.recently_dead_tuples, s.dead_tuples, s.dead_items,
         s.scanned_pages = s.rel_pages
         AND (s.rel_pages * 8192, s.live_tuples, s.dead_tuples + s.recently_dead_tuples, s.free_bytes)
             = (t.table_len, t.tuple_count, t.dead_tuple_count, t.free_space)
         AND (s.dead_bytes = t.dead_tuple_len OR s.recently_dead_tuples > 0)
         AND (s.new_pages, s.empty_pages) = (h.new_pages, h.empty_pages)
         AND s.dead_items = h.dead_items
    FROM vacuum_skip_scan(rel, 2147483647) AS s, pgstattuple(rel) AS t,
         (SELECT count(*) FILTER (WHERE upper = 0) AS new_pages,
                 count(*) FILTER (WHERE upper > 0 AND lower = 24) AS empty_pages,
                 (sum((SELECT count(*) FROM heap_page_items(page) WHERE upper > 0 AND lp_flags = 3)))::bigint AS dead_items
            FROM generate_series(0, pg_relation_size(rel) / 8192 - 1) AS block,
                 get_raw_page(rel::text, block::bigint) AS page, page_header(page)) AS h
$$;

CREATE TABLE t (id int PRIMARY KEY, filler text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT n, repeat('x', n % 100) FROM generate_series(1, 1000) AS n;
CALL await_others();
SELECT * FROM counts('t');

-- Deleted rows are dead tuples once no snapshot sees them.
DELETE FROM t WHERE id % 3 = 0;
CALL await_others();
SELECT * FROM counts('t');

-- VACUUM removes the tuples, and leaves dead items as long as the index is not
-- cleaned up.
VACUUM (FREEZE, INDEX_CLEANUP OFF) t;
SELECT * FROM counts('t');
VACUUM (FREEZE, INDEX_CLEANUP ON) t;
SELECT * FROM counts('t');

-- Rows of a transaction that has not ended: what it inserted does not count
-- yet, and what it deleted counts still.  This is how VACUUM counts.
BEGIN;
INSERT INTO t SELECT n, 'new' FROM generate_series(2001, 2010) AS n;
SELECT live_tuples, dead_tuples, recently_dead_tuples FROM vacuum_skip_scan('t', 2147483647);
DELETE FROM t WHERE id BETWEEN 1 AND 10;
SELECT live_tuples, dead_tuples, recently_dead_tuples FROM vacuum_skip_scan('t', 2147483647);
ROLLBACK;
-- rolled back: what it inserted is dead at once
CALL await_others();
SELECT * FROM counts('t');

-- Old versions of updated rows are dead, too.  Once VACUUM has removed them, the
-- line pointers that lead to the new versions are neither live nor dead.
CREATE TABLE hot (id int, n int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO hot SELECT n, 0 FROM generate_series(1, 200) AS n;
UPDATE hot SET n = 1;
CALL await_others();
SELECT * FROM counts('hot');
VACUUM (FREEZE) hot;
SELECT * FROM counts('hot');
SELECT count(*) > 0 AS redirects FROM heap_page_items(get_raw_page('hot', 0)) WHERE lp_flags = 2;

-- Pages that a bulk load has added and not filled
CREATE TABLE bulk WITH (fillfactor = 10, autovacuum_enabled = off) AS
  SELECT n, repeat('x', 500) AS filler FROM generate_series(1, 10) AS n;
SELECT new_pages > 0 AS new_pages, new_pages + 10 = rel_pages AS rest, empty_pages, live_tuples
  FROM vacuum_skip_scan('bulk', 2147483647);
CALL await_others();
SELECT agree FROM counts('bulk');

-- Of pages that are skipped nothing is counted: here all but the last.
CREATE TABLE pages (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO pages SELECT n, repeat('x', 500) FROM generate_series(0, 99) AS n;
CALL await_others();
VACUUM (FREEZE) pages;
DELETE FROM pages WHERE id IN (10, 20, 30, 40);
CALL await_others();
SELECT threshold, scanned_pages, live_tuples, dead_tuples, dead_bytes, free_bytes
  FROM unnest('{0,10,20,1000}'::int[]) AS of, vacuum_skip_scan('pages', of) ORDER BY of;
SELECT * FROM counts('pages');

-- However the pages are read, the result is the same.
CREATE TEMPORARY TABLE results AS
  SELECT 'first' AS how, s.* FROM vacuum_skip_scan('pages', 12) AS s WITH NO DATA;
CREATE PROCEDURE read_in_all_ways() LANGUAGE plpgsql AS
$$
DECLARE
  mode text;
  ahead text;
  hints text;
  collect text;
BEGIN
  FOREACH mode IN ARRAY '{stream,sync}'::text[] LOOP
    FOREACH ahead IN ARRAY '{0,1,7,256,8192}'::text[] LOOP
      FOREACH hints IN ARRAY '{0,1,16}'::text[] LOOP
        FOREACH collect IN ARRAY '{1,16}'::text[] LOOP
          PERFORM set_config('vacuum_skip.read_ahead', ahead, true),
                  set_config('maintenance_io_concurrency', hints, true),
                  set_config('io_combine_limit', collect, true);
          INSERT INTO results
            SELECT concat_ws(' ', mode, ahead, hints, collect), s.*
              FROM unnest('{0,10,12,59,60}'::int[]) AS of, vacuum_skip_scan('pages', of, mode) AS s;
        END LOOP;
      END LOOP;
    END LOOP;
  END LOOP;
END
$$;
CALL read_in_all_ways();
SELECT count(*), threshold, rel_pages, scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned,
       live_tuples, dead_tuples, bool_and(blocks_hit + blocks_read >= scanned_pages) AS counted
  FROM results
 GROUP BY threshold, aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned,
          skipped_all_visible, new_pages, empty_pages, live_tuples, recently_dead_tuples, dead_tuples, dead_items,
          dead_bytes, free_bytes
 ORDER BY threshold;
DROP TABLE results;

-- How many blocks were in shared buffers and how many had to be read
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_buffercache;
RESET client_min_messages;
SELECT FROM pg_buffercache_evict_relation('pages');
SELECT blocks_read >= scanned_pages AS read FROM vacuum_skip_scan('pages', 2147483647);
SELECT blocks_read, blocks_hit >= scanned_pages AS hit FROM vacuum_skip_scan('pages', 2147483647);
SELECT FROM pg_buffercache_evict_relation('pages');
SELECT blocks_read >= scanned_pages AS read FROM vacuum_skip_scan('pages', 2147483647, 'sync');
SELECT blocks_read, blocks_hit >= scanned_pages AS hit FROM vacuum_skip_scan('pages', 2147483647, 'sync');
-- The other functions read the visibility map alone: fork 2.
SELECT FROM pg_buffercache_evict_relation('pages');
SELECT count(*) FROM vacuum_skip_plan('pages');
SELECT count(*) FROM vacuum_skip_ranges('pages');
SELECT count(*) FROM vacuum_skip_map('pages');
SELECT count(*) FROM vacuum_skip_gaps('pages');
SELECT relforknumber, count(*) FROM pg_buffercache
 WHERE relfilenode = pg_relation_filenode('pages')
   AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
 GROUP BY relforknumber;
DROP EXTENSION pg_buffercache;

-- The time of reads is known only where the server measures it.
SET track_io_timing = off;
SELECT read_time_ms, elapsed_ms > 0 AS elapsed FROM vacuum_skip_scan('pages');
SET track_io_timing = on;
SELECT read_time_ms >= 0 AS measured, elapsed_ms > 0 AS elapsed FROM vacuum_skip_scan('pages');
RESET track_io_timing;

SET client_min_messages = warning;
DROP SCHEMA vs_scan CASCADE;
DROP EXTENSION vacuum_skip, pg_visibility, pgstattuple, pageinspect;

--
-- Every kind of relation that the heap stores
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
RESET client_min_messages;
CREATE SCHEMA vs_kinds;
SET search_path = vs_kinds, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set await_others :abs_srcdir '/include/await_others.sql'
\i :await_others

-- What all functions say of a relation, in one row: they must agree.
CREATE FUNCTION summary(rel regclass, skip_from int DEFAULT 2)
RETURNS TABLE (rel_pages bigint, scanned bigint, skipped bigint, live bigint, agree boolean) LANGUAGE sql AS
$$
  SELECT s.rel_pages, s.scanned_pages, s.skipped_pages, s.live_tuples,
         (s.rel_pages, s.scanned_pages, s.skipped_pages, s.skipped_ranges, s.skippable_pages_scanned)
           = (p.rel_pages, p.scanned_pages, p.skipped_pages, p.skipped_ranges, p.skippable_pages_scanned)
         AND s.rel_pages = pg_relation_size(rel) / 8192
         AND s.scanned_pages = r.scan AND s.skipped_pages = r.skip
         AND m.line LIKE format('%% threshold %s reads %s of %s pages (%%', skip_from, s.scanned_pages, s.rel_pages)
    FROM vacuum_skip_scan(rel, skip_from) AS s,
         vacuum_skip_plan(rel, ARRAY[skip_from]) AS p,
         (SELECT coalesce(sum(pages) FILTER (WHERE action = 'scan'), 0) AS scan,
                 coalesce(sum(pages) FILTER (WHERE action = 'skip'), 0) AS skip
            FROM vacuum_skip_ranges(rel, skip_from)) AS r,
         (SELECT line FROM vacuum_skip_map(rel, skip_from) AS line LIMIT 1) AS m
$$;

-- A table of 10 pages: each row has a page to itself, and row n is in block n.
CREATE TABLE plain (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO plain SELECT n, repeat('x', 500) FROM generate_series(0, 9) AS n;
-- The visibility map does not exist yet: everything is read.
SELECT pg_relation_size('plain', 'vm') AS map_bytes;
SELECT * FROM summary('plain');
SELECT * FROM vacuum_skip_ranges('plain', 1);
SELECT * FROM vacuum_skip_gaps('plain');
CALL await_others();
VACUUM (FREEZE) plain;
-- All but the last page can be skipped.
SELECT * FROM summary('plain');
SELECT * FROM vacuum_skip_ranges('plain', 1);
SELECT * FROM vacuum_skip_gaps('plain');
-- The map is taken away: everything is read again.
SELECT pg_truncate_visibility_map('plain');
SELECT * FROM summary('plain');
SELECT * FROM vacuum_skip_ranges('plain', 1);
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) plain;
SELECT * FROM summary('plain');

-- A table without any page, and without any column
CREATE TABLE empty () WITH (autovacuum_enabled = off);
SELECT * FROM summary('empty');
SELECT * FROM vacuum_skip_plan('empty', '{0,32}');
SELECT threshold, rel_pages, scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned,
       skipped_all_visible, new_pages, empty_pages, live_tuples, free_bytes, blocks_hit, blocks_read
  FROM vacuum_skip_scan('empty');
SELECT * FROM vacuum_skip_ranges('empty');
SELECT * FROM vacuum_skip_map('empty');
SELECT * FROM vacuum_skip_gaps('empty');

-- A table of one page: its only page is its last.
CREATE TABLE one (id int) WITH (autovacuum_enabled = off);
INSERT INTO one VALUES (1);
SELECT * FROM vacuum_skip_ranges('one', 0);
CALL await_others();
VACUUM (FREEZE) one;
SELECT * FROM vacuum_skip_ranges('one', 0);
SELECT * FROM vacuum_skip_plan('one', '{0}');
SELECT * FROM vacuum_skip_gaps('one');
SELECT * FROM summary('one', 0);

-- unlogged
CREATE UNLOGGED TABLE unlogged (LIKE plain INCLUDING ALL) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO unlogged SELECT * FROM plain;
SELECT * FROM summary('unlogged');
CALL await_others();
VACUUM (FREEZE) unlogged;
SELECT * FROM summary('unlogged');

-- temporary
CREATE TEMPORARY TABLE temporary (LIKE plain INCLUDING ALL) WITH (fillfactor = 10);
INSERT INTO temporary SELECT * FROM plain;
SELECT * FROM summary('temporary');
VACUUM (FREEZE) temporary;
SELECT * FROM summary('temporary');
SELECT read_mode, live_tuples, blocks_hit + blocks_read >= scanned_pages AS counted
  FROM vacuum_skip_scan('temporary', 0, 'stream')
UNION ALL
SELECT read_mode, live_tuples, blocks_hit + blocks_read >= scanned_pages
  FROM vacuum_skip_scan('temporary', 100, 'sync');
DROP TABLE temporary;

-- materialized view
CREATE MATERIALIZED VIEW materialized WITH (fillfactor = 10, autovacuum_enabled = off) AS SELECT * FROM plain;
CALL await_others();
VACUUM (FREEZE) materialized;
SELECT * FROM summary('materialized');
-- one without data, and so without pages
CREATE MATERIALIZED VIEW unpopulated AS SELECT * FROM plain WITH NO DATA;
SELECT * FROM summary('unpopulated');

-- TOAST table: four chunks a page
CREATE TABLE toasted (id int, long_text text STORAGE EXTERNAL) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off);
INSERT INTO toasted SELECT n, repeat('x', 7984) FROM generate_series(1, 10) AS n;
SELECT reltoastrelid AS toast FROM pg_class WHERE oid = 'toasted'::regclass \gset
SELECT * FROM summary(:toast);
CALL await_others();
VACUUM (FREEZE) toasted;
SELECT * FROM summary(:toast);
SELECT * FROM summary('toasted');

-- partition
CREATE TABLE parent (id int, filler text STORAGE PLAIN) PARTITION BY RANGE (id);
CREATE TABLE leaf PARTITION OF parent FOR VALUES FROM (0) TO (10) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO parent SELECT * FROM plain;
CALL await_others();
VACUUM (FREEZE) leaf;
SELECT * FROM summary('leaf');

-- table with children: itself, without them
CREATE TABLE child () INHERITS (plain) WITH (autovacuum_enabled = off);
INSERT INTO child VALUES (10, 'x');
SELECT * FROM summary('plain');
SELECT * FROM summary('child');
DROP TABLE child;

-- catalogs, of this database and shared ones
SELECT rel, rel_pages > 0 AS pages, scanned_pages > 0 AS scanned,
       scanned_pages + skipped_pages = rel_pages AS complete
  FROM unnest('{pg_class,pg_attribute,pg_proc,pg_database,pg_authid}'::regclass[]) AS rel, vacuum_skip_scan(rel, 1);

-- another name of the heap's access method: the heap all the same
CREATE ACCESS METHOD vs_kinds_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE other_heap (LIKE plain INCLUDING ALL) USING vs_kinds_heap WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO other_heap SELECT * FROM plain;
CALL await_others();
VACUUM (FREEZE) other_heap;
SELECT * FROM summary('other_heap');

-- in another tablespace
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_vs_space LOCATION '';
RESET allow_in_place_tablespaces;
CREATE TABLE elsewhere (LIKE plain INCLUDING ALL)
  WITH (fillfactor = 10, autovacuum_enabled = off) TABLESPACE regress_vs_space;
INSERT INTO elsewhere SELECT * FROM plain;
CALL await_others();
VACUUM (FREEZE) elsewhere;
SELECT * FROM summary('elsewhere');
DROP TABLE elsewhere;
DROP TABLESPACE regress_vs_space;

-- in a transaction that gives it other files, and takes them back
BEGIN;
TRUNCATE plain;
SELECT * FROM summary('plain');
INSERT INTO plain VALUES (0, 'x');
SELECT * FROM summary('plain');
ROLLBACK;
SELECT * FROM summary('plain');
BEGIN;
CREATE TABLE fresh AS SELECT * FROM plain;
SELECT * FROM summary('fresh');
ROLLBACK;

-- truncated by VACUUM
DELETE FROM plain;
CALL await_others();
VACUUM (FREEZE) plain;
SELECT * FROM summary('plain');

SET client_min_messages = warning;
DROP SCHEMA vs_kinds CASCADE;
DROP ACCESS METHOD vs_kinds_heap;
DROP EXTENSION vacuum_skip, pg_visibility;

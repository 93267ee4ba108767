--
-- Which threshold is in force, and where it comes from: the command, the session,
-- the table, or the configuration.  (The command: see vacuum_option.)
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
RESET client_min_messages;
CREATE SCHEMA vs_threshold;
SET search_path = vs_threshold, public;
SELECT current_database() AS database, current_user AS admin \gset
\set show 'SELECT * FROM vacuum_skip_threshold(\'t\');'

CREATE TABLE t (id int, v text) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (1);
:show
SELECT * FROM vacuum_skip_threshold(NULL);

-- The session's, by either name
SET skip_pages_threshold = 4;
:show
RESET skip_pages_threshold;
:show
SET vacuum_skip.skip_pages_threshold = 5;
:show
RESET vacuum_skip.skip_pages_threshold;
:show
-- set to what it is anyway
SET skip_pages_threshold = 32;
:show
SET skip_pages_threshold TO DEFAULT;
:show

-- for as long as it lasts
BEGIN;
SET LOCAL skip_pages_threshold = 6;
:show
COMMIT;
:show
BEGIN;
SET skip_pages_threshold = 7;
:show
ROLLBACK;
:show
BEGIN;
SAVEPOINT s;
SET skip_pages_threshold = 8;
ROLLBACK TO s;
:show
SET vacuum_skip.skip_pages_threshold = 9;
COMMIT;
:show
BEGIN;
RESET skip_pages_threshold;
:show
ROLLBACK;
:show
DISCARD ALL;
SET search_path = vs_threshold, public;
:show
SELECT set_config('skip_pages_threshold', '10', false);
:show
RESET ALL;
SET search_path = vs_threshold, public;
:show

-- within a function that has a setting of its own
CREATE FUNCTION shown(rel regclass DEFAULT 't') RETURNS text LANGUAGE sql AS
  'SELECT threshold || '' '' || source FROM vacuum_skip_threshold(rel)';
CREATE FUNCTION shown_at_3(rel regclass DEFAULT 't') RETURNS text LANGUAGE sql
  SET vacuum_skip.skip_pages_threshold = 3 AS
  'SELECT threshold || '' '' || source FROM vacuum_skip_threshold(rel)';
SELECT shown_at_3(), shown();

-- The table's, unless the session has its own
SELECT vacuum_skip_set_threshold('t', 2);
:show
SET skip_pages_threshold = 4;
:show
SELECT shown_at_3(), shown();
RESET skip_pages_threshold;
:show

-- What functions take for NULL is the same.
SELECT threshold FROM vacuum_skip_scan('t');
SELECT threshold FROM vacuum_skip_scan('t', 7);
SELECT line FROM vacuum_skip_map('t', height => 1) AS line LIMIT 1;
SET skip_pages_threshold = 4;
SELECT threshold FROM vacuum_skip_scan('t');
SELECT line FROM vacuum_skip_map('t', height => 1) AS line LIMIT 1;
RESET skip_pages_threshold;
-- ranges: of ten pages, of which one is not all-visible, the others by their number
CREATE TABLE ten (id int, filler text) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO ten SELECT i, repeat('x', 500) FROM generate_series(0, 9) AS i;
VACUUM (FREEZE, SKIP_DATABASE_STATS) ten;
UPDATE ten SET id = id WHERE id = 3;
SELECT * FROM vacuum_skip_ranges('ten');
SELECT vacuum_skip_set_threshold('ten', 4);
SELECT * FROM vacuum_skip_ranges('ten');
SET skip_pages_threshold = 6;
SELECT * FROM vacuum_skip_ranges('ten');
RESET skip_pages_threshold;

-- A TOAST table has the threshold of its main table, unless it has its own.
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 't'::regclass \gset
\set show_toast 'SELECT * FROM vacuum_skip_threshold(:\'toast\');'
:show_toast
SELECT vacuum_skip_set_threshold(:'toast', 3);
:show_toast
:show
SELECT vacuum_skip_set_threshold('t', NULL);
:show_toast
:show
SELECT vacuum_skip_set_threshold(:'toast', NULL);
:show_toast
-- also when both have been rewritten, which makes a new one
SELECT vacuum_skip_set_threshold('t', 2);
VACUUM FULL t;
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 't'::regclass \gset
:show_toast
:show
-- and its own goes with it
SELECT vacuum_skip_set_threshold(:'toast', 3);
ALTER TABLE t ALTER id TYPE bigint;
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 't'::regclass \gset
:show_toast
:show
-- of catalogs
SELECT vacuum_skip_set_threshold('pg_proc', 5);
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 'pg_proc'::regclass \gset
:show_toast
SELECT vacuum_skip_set_threshold('pg_proc', NULL);
:show_toast

-- What is configured is the default, whoever it is configured for.
SELECT vacuum_skip_set_threshold('t', NULL);
ALTER DATABASE :"database" SET vacuum_skip.skip_pages_threshold = 11;
:show
\c -
SET search_path = vs_threshold, public;
:show
SELECT shown_at_3(), shown();
SET skip_pages_threshold = 4;
RESET skip_pages_threshold;
:show
BEGIN;
SET LOCAL skip_pages_threshold = 4;
ROLLBACK;
:show
CREATE ROLE regress_vs_threshold LOGIN IN ROLE pg_stat_scan_tables;
GRANT USAGE ON SCHEMA vs_threshold TO regress_vs_threshold;
ALTER ROLE regress_vs_threshold SET vacuum_skip.skip_pages_threshold = 12;
\c - regress_vs_threshold
SET search_path = vs_threshold, public;
:show
\c - :admin
SET search_path = vs_threshold, public;
SELECT vacuum_skip_set_threshold('t', 2);
\c - regress_vs_threshold
SET search_path = vs_threshold, public;
:show
-- What the client asks for when it connects is the session's.
\c -reuse-previous=on "options='-c vacuum_skip.skip_pages_threshold=13'"
SET search_path = vs_threshold, public;
:show
SET skip_pages_threshold = 4;
:show
RESET skip_pages_threshold;
:show
\c -reuse-previous=on "options=''"
\c - :admin
ALTER DATABASE :"database" RESET vacuum_skip.skip_pages_threshold;
ALTER SYSTEM SET vacuum_skip.skip_pages_threshold = 14;
SELECT pg_reload_conf();
\c -
SET search_path = vs_threshold, public;
:show
SELECT vacuum_skip_set_threshold('t', NULL);
:show
ALTER SYSTEM RESET vacuum_skip.skip_pages_threshold;
SELECT pg_reload_conf();

-- Who may ask, and what for: as with all functions
\c - regress_vs_threshold
SET search_path = vs_threshold, public;
SELECT threshold, source FROM vacuum_skip_threshold('t');
\c - :admin
SET search_path = vs_threshold, public;
REVOKE pg_stat_scan_tables FROM regress_vs_threshold;
SET ROLE regress_vs_threshold;
:show
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
CREATE VIEW v AS SELECT 1;
SELECT * FROM vacuum_skip_threshold('v');
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE p (id int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p DEFAULT;
SELECT vacuum_skip_set_threshold('p1', 2);
SELECT * FROM vacuum_skip_threshold('p');
\echo :LAST_ERROR_SQLSTATE
SELECT p.relid, s.* FROM pg_partition_tree('p') AS p, LATERAL vacuum_skip_threshold(p.relid) AS s WHERE p.isleaf;

-- The library need not have been loaded before.
\c -reuse-previous=on "options='-c session_preload_libraries= -c vacuum_skip.skip_pages_threshold=13'"
SELECT * FROM vacuum_skip_threshold('vs_threshold.t');
\c -reuse-previous=on "options='-c session_preload_libraries='"
SELECT * FROM vacuum_skip_threshold('vs_threshold.p1');
\c -reuse-previous=on "options=''"

SET client_min_messages = warning;
DROP SCHEMA vs_threshold CASCADE;
DROP EXTENSION vacuum_skip;
DROP ROLE regress_vs_threshold;

--
-- What the functions take, and what they say to what they do not take
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
RESET client_min_messages;
CREATE SCHEMA vs_arguments;
SET search_path = vs_arguments, public;

CREATE TABLE t (id int) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (1);

-- No relation, no rows, whatever the rest is
SELECT * FROM vacuum_skip_scan(NULL, -2, 'x');
SELECT * FROM vacuum_skip_plan(NULL, '{}');
SELECT * FROM vacuum_skip_ranges(NULL, -2);
SELECT * FROM vacuum_skip_map(NULL, -2, 0, 0);
SELECT * FROM vacuum_skip_gaps(NULL);

-- A relation that does not exist
SELECT * FROM vacuum_skip_scan('missing');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_scan(4294967295::oid::regclass);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan(4294967295::oid::regclass);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_ranges(4294967295::oid::regclass);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map(4294967295::oid::regclass);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_gaps(4294967295::oid::regclass);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_scan('-');
\echo :LAST_ERROR_SQLSTATE
-- one that has been dropped since
SELECT 't'::regclass::oid AS dropped \gset
DROP TABLE t;
\set VERBOSITY sqlstate
SELECT * FROM vacuum_skip_scan(:dropped::regclass);
\set VERBOSITY default
CREATE TABLE t (id int) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (1);

--
-- threshold
--

-- NULL, or no argument, is the one in force.
SET skip_pages_threshold = 7;
SELECT threshold FROM vacuum_skip_scan('t');
SELECT threshold FROM vacuum_skip_scan('t', NULL);
SELECT threshold FROM vacuum_skip_scan('t', 0);
SELECT threshold FROM vacuum_skip_scan('t', threshold => 2147483647);
BEGIN;
SET LOCAL vacuum_skip.skip_pages_threshold = 8;
SELECT threshold FROM vacuum_skip_scan('t');
COMMIT;
SELECT threshold FROM vacuum_skip_scan('t');
SELECT * FROM vacuum_skip_map('t') LIMIT 1;
SELECT * FROM vacuum_skip_map('t', 5) LIMIT 1;
SELECT count(*) FROM vacuum_skip_ranges('t', NULL);
RESET skip_pages_threshold;
SELECT threshold FROM vacuum_skip_scan('t');

-- out of range
SELECT * FROM vacuum_skip_scan('t', -2);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_ranges('t', -2);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', -2147483648);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('t', '{1,-2}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_scan('t', 2147483648);
\echo :LAST_ERROR_SQLSTATE

-- automatic
SELECT * FROM vacuum_skip_scan('t', -1);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_ranges('t', -1);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', -1);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('t', '{-1}');
\echo :LAST_ERROR_SQLSTATE

--
-- thresholds
--

-- By default, these
SELECT threshold FROM vacuum_skip_plan('t');
-- A row for each, in the order asked, as often as asked
SELECT threshold, scanned_pages FROM vacuum_skip_plan('t', '{5,0,5,2147483647,1}');
SELECT threshold, scanned_pages FROM vacuum_skip_plan('t', '{32}');
SELECT count(*), min(threshold), max(threshold),
       bool_and(threshold = 1001 - n) AS in_order
  FROM vacuum_skip_plan('t', (SELECT array_agg(n ORDER BY n DESC) FROM generate_series(1, 1000) AS n))
       WITH ORDINALITY AS p(threshold, a, b, c, d, e, f, g, h, n);
-- NULL is no list, as for any STRICT function
SELECT * FROM vacuum_skip_plan('t', NULL);

SELECT * FROM vacuum_skip_plan('t', '{}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('t', '{1,NULL,2}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('t', array_fill(1, '{1001}'));
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('t', '{1,x}');
\echo :LAST_ERROR_SQLSTATE
-- in arrays of any shape
SELECT threshold FROM vacuum_skip_plan('t', '{{1,2},{3,4}}');
SELECT threshold FROM vacuum_skip_plan('t', '[0:1]={3,4}');

--
-- read_mode
--
SELECT read_mode FROM vacuum_skip_scan('t');
SELECT read_mode FROM vacuum_skip_scan('t', read_mode => 'sync');
SELECT read_mode FROM vacuum_skip_scan('t', NULL, 'STREAM');
SET vacuum_skip.read_mode = sync;
SELECT read_mode FROM vacuum_skip_scan('t');
SELECT read_mode FROM vacuum_skip_scan('t', NULL, NULL);
SELECT read_mode FROM vacuum_skip_scan('t', NULL, 'stream');
RESET vacuum_skip.read_mode;
SELECT * FROM vacuum_skip_scan('t', NULL, 'strem');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_scan('t', NULL, '');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_scan('t', NULL, ' sync');
\echo :LAST_ERROR_SQLSTATE

--
-- width and height
--
SELECT * FROM vacuum_skip_map('t', 32, 1, 1);
SELECT * FROM vacuum_skip_map('t', 32, 5, 1);
SELECT count(*), max(length(line)) FROM vacuum_skip_map('t', 32, 1000, 1000) AS line;
-- NULL is the default: 64 characters between bars
SELECT length(line) AS length, line = (SELECT line FROM vacuum_skip_map('t') AS line OFFSET 1 LIMIT 1) AS default
  FROM vacuum_skip_map('t', NULL, NULL, NULL) AS line OFFSET 1 LIMIT 1;
SELECT * FROM vacuum_skip_map('t', 32, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', 32, 1001);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', 32, -1);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', 32, 64, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', 32, height => 1001);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', 32, height => -2147483648);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t', 32, 10000, 10000);
\echo :LAST_ERROR_SQLSTATE

--
-- What is a relation, but not one that VACUUM scans.  All functions say
-- so; what they say is shown for one of them.
--
CREATE FUNCTION refusals(rel regclass)
RETURNS TABLE (function text, state text, message text) LANGUAGE plpgsql AS
$$
BEGIN
  FOREACH function IN ARRAY '{scan,plan,ranges,map,gaps,threshold}'::text[] LOOP
    BEGIN
      EXECUTE format('SELECT FROM vacuum_skip_%s($1)', function) USING rel;
      state := 'no error'; message := NULL;
    EXCEPTION WHEN OTHERS THEN
      state := sqlstate; message := sqlerrm;
    END;
    RETURN NEXT;
  END LOOP;
END
$$;

CREATE VIEW v AS SELECT * FROM t;
SELECT * FROM vacuum_skip_scan('v');
\echo :LAST_ERROR_SQLSTATE

CREATE INDEX i ON t (id);
SELECT * FROM vacuum_skip_scan('i');
\echo :LAST_ERROR_SQLSTATE

CREATE SEQUENCE s;
SELECT * FROM vacuum_skip_scan('s');
\echo :LAST_ERROR_SQLSTATE

CREATE TYPE c AS (id int);
SELECT * FROM vacuum_skip_scan('c');
\echo :LAST_ERROR_SQLSTATE

CREATE FOREIGN DATA WRAPPER vs_arguments_wrapper;
CREATE SERVER vs_arguments_server FOREIGN DATA WRAPPER vs_arguments_wrapper;
CREATE FOREIGN TABLE f (id int) SERVER vs_arguments_server;
SELECT * FROM vacuum_skip_scan('f');
\echo :LAST_ERROR_SQLSTATE

-- A partitioned table has no pages.  The query in the hint scans what has,
-- whatever the names are.
CREATE TABLE "it's a Parent" (id int) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF "it's a Parent" FOR VALUES FROM (0) TO (10) WITH (autovacuum_enabled = off);
CREATE TABLE high PARTITION OF "it's a Parent" FOR VALUES FROM (10) TO (99) PARTITION BY RANGE (id);
CREATE TABLE highest PARTITION OF high FOR VALUES FROM (20) TO (99) WITH (autovacuum_enabled = off);
INSERT INTO "it's a Parent" VALUES (1), (2), (20);
CREATE INDEX parent_i ON "it's a Parent" (id);
SELECT * FROM vacuum_skip_scan('"it''s a Parent"');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('"it''s a Parent"');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_ranges('"it''s a Parent"');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('"it''s a Parent"');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_gaps('"it''s a Parent"');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_scan('parent_i');
\echo :LAST_ERROR_SQLSTATE

CREATE FUNCTION hinted_query(function text, rel regclass) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  hint text;
BEGIN
  EXECUTE format('SELECT FROM vacuum_skip_%s($1)', function) USING rel;
EXCEPTION WHEN wrong_object_type THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN substring(hint FROM '(SELECT .*)\.$');
END
$$;
SELECT hinted_query('ranges', '"it''s a Parent"') AS query \gset
:query
;
SELECT hinted_query('plan', '"it''s a Parent"') AS query \gset
SELECT * FROM (:query) AS q WHERE threshold = 128;
SELECT hinted_query('scan', '"it''s a Parent"') AS query \gset
SELECT relid, threshold, rel_pages, scanned_pages, live_tuples FROM (:query) AS q;
SELECT hinted_query('map', '"it''s a Parent"') AS query \gset
:query
;
SELECT hinted_query('gaps', '"it''s a Parent"') AS query \gset
:query
;
-- The search path need not find the table.
SET search_path = public;
SELECT * FROM vacuum_skip_scan('vs_arguments."it''s a Parent"');
SET search_path = vs_arguments, public;

-- all functions, for all of these
SELECT kind, message, state, string_agg(function, ' ' ORDER BY function) AS functions
  FROM unnest('{v,i,s,c,f,"\"it''s a Parent\"",high,parent_i}'::regclass[]) AS kind, refusals(kind)
 GROUP BY kind, message, state ORDER BY kind::text COLLATE "C";

-- A broken argument is found before the relation is looked at
SELECT * FROM vacuum_skip_scan('v', -2);
\echo :LAST_ERROR_SQLSTATE

-- An error leaves the session as it was.
BEGIN;
SAVEPOINT s;
SELECT * FROM vacuum_skip_scan('v');
ROLLBACK TO s;
SELECT * FROM vacuum_skip_scan('t', -2);
ROLLBACK TO s;
SELECT rel_pages FROM vacuum_skip_scan('t');
SELECT mode, relation::regclass FROM pg_locks
 WHERE locktype = 'relation' AND pid = pg_backend_pid() AND relation = ANY ('{t,v}'::regclass[]);
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA vs_arguments CASCADE;
DROP FOREIGN DATA WRAPPER vs_arguments_wrapper CASCADE;
DROP EXTENSION vacuum_skip;

--
-- VACUUM (SKIP_PAGES_THRESHOLD n): a threshold for one command
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
RESET client_min_messages;
CREATE SCHEMA vs_option;
SET search_path = vs_option, public;

CREATE TABLE t (id int, v text) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (1);
CREATE TABLE u (id int) WITH (autovacuum_enabled = off);

--
-- What is taken
--
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
VACUUM (SKIP_PAGES_THRESHOLD 0) t;
VACUUM (SKIP_PAGES_THRESHOLD 2147483647) t, u;
VACUUM (skip_pages_threshold 4) t;
VACUUM ("skip_pages_threshold" 4) t;
-- all of the database's tables
VACUUM (SKIP_PAGES_THRESHOLD 4, SKIP_LOCKED);

-- with every other option but FULL, in any place
VACUUM (SKIP_PAGES_THRESHOLD 4, FREEZE) t;
VACUUM (ANALYZE, SKIP_PAGES_THRESHOLD 4, FREEZE false) t (id), u;
VACUUM (DISABLE_PAGE_SKIPPING, SKIP_PAGES_THRESHOLD 4) t;
VACUUM (SKIP_LOCKED, SKIP_PAGES_THRESHOLD 4, INDEX_CLEANUP off, TRUNCATE off, PARALLEL 2) t;
VACUUM (PROCESS_MAIN off, PROCESS_TOAST on, SKIP_PAGES_THRESHOLD 4) t;
VACUUM (BUFFER_USAGE_LIMIT '1MB', SKIP_DATABASE_STATS, SKIP_PAGES_THRESHOLD 4) t;
VACUUM (FULL off, SKIP_PAGES_THRESHOLD 4) t;
VACUUM (FULL, SKIP_PAGES_THRESHOLD 4, FULL off) t;
VACUUM (ONLY_DATABASE_STATS, SKIP_PAGES_THRESHOLD 4);

--
-- What is not
--
VACUUM (SKIP_PAGES_THRESHOLD) t;
\echo :LAST_ERROR_SQLSTATE
VACUUM (SKIP_PAGES_THRESHOLD -2) t;
\echo :LAST_ERROR_SQLSTATE
VACUUM (SKIP_PAGES_THRESHOLD 2147483648) t;
VACUUM (SKIP_PAGES_THRESHOLD 4.5) t;
VACUUM (SKIP_PAGES_THRESHOLD four) t;
VACUUM (SKIP_PAGES_THRESHOLD on) t;
-- as for PARALLEL, a string is no number
VACUUM (SKIP_PAGES_THRESHOLD '4') t;
VACUUM (PARALLEL '4') t;
-- automatic
VACUUM (SKIP_PAGES_THRESHOLD -1) t;
\echo :LAST_ERROR_SQLSTATE
-- The last one counts, but each is checked.
VACUUM (SKIP_PAGES_THRESHOLD 4, SKIP_PAGES_THRESHOLD 5) t;
VACUUM (SKIP_PAGES_THRESHOLD -2, SKIP_PAGES_THRESHOLD 5) t;
VACUUM (SKIP_PAGES_THRESHOLD 4, SKIP_PAGES_THRESHOLD) t;
-- FULL
VACUUM (SKIP_PAGES_THRESHOLD 4, FULL) t;
\echo :LAST_ERROR_SQLSTATE
VACUUM (FULL, ANALYZE, SKIP_PAGES_THRESHOLD 4) t;
VACUUM (FULL off, SKIP_PAGES_THRESHOLD 4, FULL on) t;
VACUUM (FULL maybe, SKIP_PAGES_THRESHOLD 4) t;
\echo :LAST_ERROR_SQLSTATE
-- other names
VACUUM (SKIP_PAGES_THRESHOLDS 4) t;
VACUUM ("SKIP_PAGES_THRESHOLD" 4) t;
VACUUM (vacuum_skip.skip_pages_threshold 4) t;
-- other commands
ANALYZE (SKIP_PAGES_THRESHOLD 4) t;
\echo :LAST_ERROR_SQLSTATE
CLUSTER (SKIP_PAGES_THRESHOLD 4) t;
REINDEX (SKIP_PAGES_THRESHOLD 4) TABLE t;

--
-- VACUUM's own checks are as strict as without
--
VACUUM (SKIP_PAGES_THRESHOLD 4, NONSENSE) t;
\echo :LAST_ERROR_SQLSTATE
VACUUM (SKIP_PAGES_THRESHOLD 4, PARALLEL 2000) t;
VACUUM (SKIP_PAGES_THRESHOLD 4) t (id);
VACUUM (SKIP_PAGES_THRESHOLD 4) missing;
VACUUM (ONLY_DATABASE_STATS, SKIP_PAGES_THRESHOLD 4) t;
BEGIN;
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
DO $$ BEGIN EXECUTE 'VACUUM (SKIP_PAGES_THRESHOLD 4) vs_option.t'; END $$;
\echo :LAST_ERROR_SQLSTATE
CREATE ROLE regress_vs_option;
SET ROLE regress_vs_option;
VACUUM (SKIP_PAGES_THRESHOLD 4) vs_option.t;
RESET ROLE;
GRANT USAGE ON SCHEMA vs_option TO regress_vs_option;
SET ROLE regress_vs_option;
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
RESET ROLE;

-- It is never silently without effect.
SET vacuum_skip.vacuum_engine = never;
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
\echo :LAST_ERROR_SQLSTATE
VACUUM t;
SET vacuum_skip.vacuum_engine = always;
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
RESET vacuum_skip.vacuum_engine;

-- A statement that is kept, for another execution, keeps the option.
VACUUM (SKIP_PAGES_THRESHOLD 4) t \parse vacuum_t
\bind_named vacuum_t \g
SET vacuum_skip.vacuum_engine = never;
\bind_named vacuum_t \g
RESET vacuum_skip.vacuum_engine;

--
-- The value holds for the command, whatever transactions it takes, and no longer.
-- ANALYZE, as part of VACUUM, runs functions of statistics; this one looks.
--
CREATE FUNCTION tell(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
DECLARE
  found record;
BEGIN
  SELECT * INTO found FROM public.vacuum_skip_threshold('vs_option.t');
  RAISE NOTICE '% (%)', found.threshold, found.source;
  RETURN id / (id - 7);
END
$$;
CREATE STATISTICS s ON (tell(id)), v FROM t;
SET skip_pages_threshold = 5;
VACUUM (ANALYZE) t;
VACUUM (SKIP_PAGES_THRESHOLD 4, ANALYZE) t;
VACUUM (SKIP_PAGES_THRESHOLD 4, ANALYZE) u, t;
VACUUM (SKIP_PAGES_THRESHOLD 4, ANALYZE, SKIP_PAGES_THRESHOLD 6) t;
ANALYZE t;
VACUUM ANALYZE t;
SELECT * FROM vacuum_skip_threshold('t');

-- nor does it outlive an error
\set VERBOSITY terse
VACUUM (SKIP_PAGES_THRESHOLD 4, ANALYZE) t, missing;
SELECT * FROM vacuum_skip_threshold('t');
BEGIN;
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
ROLLBACK;
SELECT * FROM vacuum_skip_threshold('t');
-- one that comes when part of the work is done
UPDATE t SET id = 7;
VACUUM (SKIP_PAGES_THRESHOLD 4, ANALYZE) t;
SELECT * FROM vacuum_skip_threshold('t');
VACUUM t;
\set VERBOSITY default
RESET skip_pages_threshold;
SELECT * FROM vacuum_skip_threshold('t');

SET client_min_messages = warning;
DROP SCHEMA vs_option CASCADE;
DROP EXTENSION vacuum_skip;
DROP ROLE regress_vs_option;

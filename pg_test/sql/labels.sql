--
-- A threshold of a table's own, kept as a security label
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
RESET client_min_messages;
CREATE SCHEMA vs_labels;
SET search_path = vs_labels, public;
\set labels 'SELECT objname, objtype, label FROM pg_seclabels WHERE provider = \'vacuum_skip\' ORDER BY objname COLLATE "C";'

CREATE TABLE t (id int, v text) WITH (autovacuum_enabled = off);
CREATE TABLE "Other one" (id int);
CREATE MATERIALIZED VIEW m AS SELECT 1 AS a;

--
-- What is taken
--
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=4';
SECURITY LABEL FOR vacuum_skip ON MATERIALIZED VIEW m IS 'skip_pages_threshold=0';
-- It is the only provider here.
SECURITY LABEL ON TABLE "Other one" IS e'  skip_pages_threshold\t= 2147483647 ';
:labels
SELECT * FROM vacuum_skip_tables ORDER BY rel::text COLLATE "C";
SELECT * FROM vacuum_skip_threshold('t');
SELECT * FROM vacuum_skip_threshold('m');
SELECT * FROM vacuum_skip_threshold('"Other one"');
-- another one
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=5';
SELECT vacuum_skip_set_threshold('"Other one"', 6);
SELECT vacuum_skip_set_threshold('m', 7);
:labels
-- none
SECURITY LABEL FOR vacuum_skip ON TABLE t IS NULL;
SELECT vacuum_skip_set_threshold('m', NULL);
SELECT vacuum_skip_set_threshold('"Other one"', NULL);
-- and once more
SELECT vacuum_skip_set_threshold('m', NULL);
SECURITY LABEL FOR vacuum_skip ON MATERIALIZED VIEW m IS NULL;
:labels
SELECT * FROM vacuum_skip_tables;
SELECT * FROM vacuum_skip_threshold('t');
-- NULL is no table
SELECT vacuum_skip_set_threshold(NULL, 4);
SELECT vacuum_skip_set_threshold(NULL, -2);
-- The last of several calls counts.
SELECT vacuum_skip_set_threshold('t', 4), vacuum_skip_set_threshold('t', 5);
SELECT vacuum_skip_set_threshold('t', n) FROM generate_series(6, 8) AS n;
:labels

--
-- What is not
--
SECURITY LABEL FOR vacuum_skip ON TABLE t IS '';
\echo :LAST_ERROR_SQLSTATE
SECURITY LABEL FOR vacuum_skip ON TABLE t IS '4';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=-2';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=2147483648';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=four';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=4, read_mode=sync';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'read_mode=sync';
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=-1';
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('t', -2);
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('t', -1);
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('missing', 4);
SELECT vacuum_skip_set_threshold(4294967295::oid::regclass, 4);
\echo :LAST_ERROR_SQLSTATE
:labels

-- What VACUUM does not scan
CREATE VIEW v AS SELECT 1 AS a;
SECURITY LABEL FOR vacuum_skip ON VIEW v IS 'skip_pages_threshold=4';
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('v', 4);
\echo :LAST_ERROR_SQLSTATE
CREATE SEQUENCE s;
SECURITY LABEL FOR vacuum_skip ON SEQUENCE s IS 'skip_pages_threshold=4';
CREATE INDEX i ON t (id);
SECURITY LABEL FOR vacuum_skip ON TABLE i IS 'skip_pages_threshold=4';
SELECT vacuum_skip_set_threshold('i', 4);
CREATE TYPE c AS (id int);
SECURITY LABEL FOR vacuum_skip ON TYPE c IS 'skip_pages_threshold=4';
\echo :LAST_ERROR_SQLSTATE
SECURITY LABEL FOR vacuum_skip ON COLUMN t.id IS 'skip_pages_threshold=4';
\echo :LAST_ERROR_SQLSTATE
SECURITY LABEL FOR vacuum_skip ON SCHEMA vs_labels IS 'skip_pages_threshold=4';
CREATE ROLE regress_vs_labels;
SECURITY LABEL FOR vacuum_skip ON ROLE regress_vs_labels IS 'skip_pages_threshold=4';
-- A label for nothing is nothing wrong.
SECURITY LABEL FOR vacuum_skip ON VIEW v IS NULL;
SECURITY LABEL FOR vacuum_skip ON COLUMN t.id IS NULL;
SECURITY LABEL FOR vacuum_skip ON ROLE regress_vs_labels IS NULL;
SECURITY LABEL FOR vacuum ON TABLE t IS 'skip_pages_threshold=4';

-- A partitioned table has no pages.  The query in the hint labels what has.
CREATE TABLE "it's a Parent" (id int) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF "it's a Parent" FOR VALUES FROM (0) TO (10);
CREATE TABLE high PARTITION OF "it's a Parent" FOR VALUES FROM (10) TO (99) PARTITION BY RANGE (id);
CREATE TABLE highest PARTITION OF high FOR VALUES FROM (20) TO (99);
SECURITY LABEL FOR vacuum_skip ON TABLE "it's a Parent" IS 'skip_pages_threshold=4';
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('"it''s a Parent"', 4);
\echo :LAST_ERROR_SQLSTATE
CREATE FUNCTION hinted_query() RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  hint text;
BEGIN
  SECURITY LABEL FOR vacuum_skip ON TABLE "it's a Parent" IS 'skip_pages_threshold=4';
EXCEPTION WHEN wrong_object_type THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN substring(hint FROM '(SELECT .*)\.$');
END
$$;
SELECT hinted_query() AS query \gset
:query
;
:labels

--
-- It belongs to the table: transactional, moved and dropped with it
--
BEGIN;
SELECT vacuum_skip_set_threshold('t', 9);
SECURITY LABEL FOR vacuum_skip ON TABLE low IS NULL;
SELECT * FROM vacuum_skip_threshold('t');
SELECT mode FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() ORDER BY mode;
ROLLBACK;
SELECT * FROM vacuum_skip_threshold('t');
ALTER TABLE t RENAME TO renamed;
VACUUM FULL renamed;
TRUNCATE renamed;
ALTER TABLE renamed ALTER id TYPE bigint;
SELECT * FROM vacuum_skip_tables ORDER BY rel::text COLLATE "C";
ALTER TABLE renamed RENAME TO t;
CREATE TABLE likewise (LIKE t INCLUDING ALL);
SELECT * FROM vacuum_skip_threshold('likewise');
CREATE TEMPORARY TABLE temporary (id int);
SELECT vacuum_skip_set_threshold('temporary', 3);
SELECT * FROM vacuum_skip_tables WHERE rel = 'temporary'::regclass;
DROP TABLE temporary, "it's a Parent";
SELECT rel FROM vacuum_skip_tables;
-- A TOAST table's can only be set by the function.
SELECT vacuum_skip_set_threshold(reltoastrelid, 3) FROM pg_class WHERE oid = 't'::regclass;
SELECT rel = (SELECT reltoastrelid FROM pg_class WHERE oid = 't'::regclass) AS is_toast, threshold
  FROM vacuum_skip_tables ORDER BY is_toast;
DROP TABLE t;
SELECT count(*) FROM pg_seclabel WHERE provider = 'vacuum_skip';

--
-- Who may: the owner, as with SECURITY LABEL
--
CREATE ROLE regress_vs_labels_owner;
GRANT CREATE, USAGE ON SCHEMA vs_labels TO regress_vs_labels, regress_vs_labels_owner;
SET ROLE regress_vs_labels_owner;
CREATE TABLE t (id int, v text);
CREATE MATERIALIZED VIEW n AS SELECT 1 AS a;
SELECT vacuum_skip_set_threshold('t', 4);
SELECT vacuum_skip_set_threshold(reltoastrelid, 3) FROM pg_class WHERE oid = 't'::regclass;
SELECT vacuum_skip_set_threshold(reltoastrelid, NULL) FROM pg_class WHERE oid = 't'::regclass;
GRANT ALL ON t TO regress_vs_labels;
SET ROLE regress_vs_labels;
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=5';
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('t', 5);
\echo :LAST_ERROR_SQLSTATE
SELECT vacuum_skip_set_threshold('t', NULL);
SELECT vacuum_skip_set_threshold('n', 5);
SELECT vacuum_skip_set_threshold('pg_class', 5);
-- Everybody may look.
SELECT * FROM vacuum_skip_tables;
SELECT * FROM vacuum_skip_threshold('t');
RESET ROLE;
-- not where nothing may be written
BEGIN READ ONLY;
SELECT vacuum_skip_set_threshold('t', 5);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- Labels outlive the extension, and are found by the next.
DROP EXTENSION vacuum_skip;
:labels
CREATE EXTENSION vacuum_skip SCHEMA public;
SELECT * FROM vacuum_skip_tables;

-- What cannot be read is told, and does not keep VACUUM from its work.
UPDATE pg_seclabel SET label = 'skip_pages_threshold=4000000000' WHERE objoid = 't'::regclass AND provider = 'vacuum_skip';
SELECT * FROM vacuum_skip_threshold('t');
VACUUM t;
SELECT vacuum_skip_set_threshold('t', NULL);
SELECT * FROM vacuum_skip_threshold('t');

-- Where the library is not loaded, nobody looks at labels, and nobody takes new
-- ones or the option of VACUUM.
SELECT vacuum_skip_set_threshold('t', 4);
\c -reuse-previous=on "options='-c session_preload_libraries='"
SET search_path = vs_labels, public;
VACUUM t;
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=5';
\echo :LAST_ERROR_SQLSTATE
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_tables;
-- until a function or LOAD loads it
SELECT * FROM vacuum_skip_threshold('t');
SECURITY LABEL FOR vacuum_skip ON TABLE t IS 'skip_pages_threshold=5';
VACUUM (SKIP_PAGES_THRESHOLD 4) t;
SELECT * FROM vacuum_skip_tables;
\c -reuse-previous=on "options=''"

SET client_min_messages = warning;
DROP SCHEMA vs_labels CASCADE;
DROP EXTENSION vacuum_skip;
DROP ROLE regress_vs_labels, regress_vs_labels_owner;

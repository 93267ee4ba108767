--
-- What the extension puts into a database: functions, a view, and settings
--

-- Nothing is there before, and nothing is left after DROP EXTENSION.
SELECT count(*) FROM pg_proc WHERE proname LIKE 'vacuum\_skip%';
CREATE EXTENSION vacuum_skip;
\dx+ vacuum_skip
DROP EXTENSION vacuum_skip;
SELECT count(*) FROM pg_proc WHERE proname LIKE 'vacuum\_skip%';

-- It installs into any schema, and stays there.
CREATE SCHEMA vs_surface;
CREATE EXTENSION vacuum_skip SCHEMA vs_surface;
SELECT to_regprocedure('vs_surface.vacuum_skip_gaps(regclass)') IS NOT NULL AS installed;
CREATE TABLE vs_surface.t ();
SELECT rel_pages FROM vs_surface.vacuum_skip_scan('vs_surface.t');
ALTER EXTENSION vacuum_skip SET SCHEMA public;
DROP EXTENSION vacuum_skip;
DROP TABLE vs_surface.t;
DROP SCHEMA vs_surface;

-- Only a superuser installs it.
CREATE ROLE regress_vs_surface;
GRANT CREATE ON SCHEMA public TO regress_vs_surface;
SET ROLE regress_vs_surface;
CREATE EXTENSION vacuum_skip;
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM regress_vs_surface;
DROP ROLE regress_vs_surface;

CREATE EXTENSION vacuum_skip;

-- The version that is installed is the one that is offered.
SELECT extversion = default_version AS current, comment
  FROM pg_extension JOIN pg_available_extensions ON name = extname
 WHERE extname = 'vacuum_skip';

-- Arguments: names, types, defaults.
SELECT proname, pg_get_function_arguments(oid) AS arguments
  FROM pg_proc WHERE proname LIKE 'vacuum\_skip%' ORDER BY proname COLLATE "C";

-- Columns of the results: names, types, order.
\pset format unaligned
\pset tuples_only on
SELECT proname || E':\n  ' ||
       regexp_replace(pg_get_function_result(p.oid), '(^TABLE\(|, )', E'\\1\n    ', 'g')
  FROM pg_proc AS p WHERE proname LIKE 'vacuum\_skip%' ORDER BY proname COLLATE "C";
\pset format aligned
\pset tuples_only off

-- Functions that look at what VACUUM may change at any time are volatile, and
-- run in the session whose settings and temporary tables they use; what changes
-- the catalogs is not for parallel queries.  NULL is an answer to "which
-- threshold", so not all are strict.  Nobody is kept from
-- calling them: they check the privilege on the relation themselves.
SELECT proname, prokind, provolatile, proparallel, proisstrict, prosecdef, proretset, prorows, proacl
  FROM pg_proc WHERE proname LIKE 'vacuum\_skip%' ORDER BY proname COLLATE "C";

-- Each says what it is for.
SELECT proname, obj_description(oid, 'pg_proc') AS description
  FROM pg_proc WHERE proname LIKE 'vacuum\_skip%' ORDER BY proname COLLATE "C";

-- The view
\d vacuum_skip_tables
\dp vacuum_skip_tables
SELECT objsubid, description FROM pg_description WHERE objoid = 'vacuum_skip_tables'::regclass ORDER BY objsubid;

-- The settings.  The short name of the threshold is no setting of its own and
-- is not listed.
SELECT name, vartype, unit, context, boot_val, min_val, max_val, enumvals
  FROM pg_settings WHERE name ~ '^vacuum_skip\.|skip_pages_threshold' ORDER BY name COLLATE "C";
SELECT name, short_desc, extra_desc
  FROM pg_settings WHERE name ~ '^vacuum_skip\.|skip_pages_threshold' ORDER BY name COLLATE "C";

DROP EXTENSION vacuum_skip;

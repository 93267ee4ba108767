--
-- Sessions that have not loaded the library: it can be loaded at any time
--
\set show 'SELECT current_setting(\'skip_pages_threshold\', true) AS short, current_setting(\'vacuum_skip.skip_pages_threshold\', true) AS long;'
SELECT current_user AS admin \gset
CREATE ROLE regress_vs_plain LOGIN SUPERUSER;
-- another library than ours
ALTER ROLE regress_vs_plain SET session_preload_libraries = 'plpgsql';

-- Before, the short name is unknown: a name without a dot must belong to
-- something.  The long one is accepted, as with any extension.
\c - regress_vs_plain
:show
SET skip_pages_threshold = 4;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.skip_pages_threshold = 5;
:show
LOAD 'vacuum_skip';
:show
SET skip_pages_threshold = 4;
:show
RESET skip_pages_threshold;
:show

-- Nothing was set before
\c -
LOAD 'vacuum_skip';
:show
SET skip_pages_threshold = 4;
:show

-- Within a transaction: what was set for its duration ends with it.
\c -
SET vacuum_skip.skip_pages_threshold = 5;
BEGIN;
SET LOCAL vacuum_skip.skip_pages_threshold = 6;
LOAD 'vacuum_skip';
:show
SET LOCAL skip_pages_threshold = 7;
:show
COMMIT;
:show
-- LOAD again changes nothing.
SET skip_pages_threshold = 4;
LOAD 'vacuum_skip';
:show

-- A library stays loaded although the transaction does not.
\c -
BEGIN;
LOAD 'vacuum_skip';
SET skip_pages_threshold = 4;
:show
ROLLBACK;
:show

-- Values that turn out to be no values are dropped with a warning, as are
-- names that turn out not to exist.
\c -
SET vacuum_skip.skip_pages_threshold = 'x';
SET vacuum_skip.read_ahead = 8193;
SET vacuum_skip.read_mode = 'strem';
SET vacuum_skip.nonsense = 'on';
LOAD 'vacuum_skip';
:show
SHOW vacuum_skip.read_ahead;
SHOW vacuum_skip.read_mode;
SELECT current_setting('vacuum_skip.nonsense', true) IS NULL AS forgotten;

-- Calling a function loads it as well.
\c -
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
RESET client_min_messages;
\c -
CREATE TABLE vs_load ();
:show
SELECT rel_pages FROM vacuum_skip_plan('vs_load', '{1}');
:show
SET skip_pages_threshold = 4;
:show
DROP TABLE vs_load;
DROP EXTENSION vacuum_skip;

-- A role that loads it by its own session_preload_libraries.  Its own
-- threshold is known by the long name.
\c - :admin
CREATE ROLE regress_vs_preload LOGIN;
ALTER ROLE regress_vs_preload SET session_preload_libraries = 'vacuum_skip';
ALTER ROLE regress_vs_preload SET vacuum_skip.skip_pages_threshold = 6;
\c - regress_vs_preload
:show
SET skip_pages_threshold = 4;
:show
RESET skip_pages_threshold;
:show

\c - :admin
DROP ROLE regress_vs_plain, regress_vs_preload;

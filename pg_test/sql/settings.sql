--
-- skip_pages_threshold and vacuum_skip.skip_pages_threshold are two names of
-- one setting: whatever is done to either, both show what a single setting
-- would show.
--
\set show 'SELECT current_setting(\'skip_pages_threshold\') AS short, current_setting(\'vacuum_skip.skip_pages_threshold\') AS long;'
:show
SHOW skip_pages_threshold;
SHOW vacuum_skip.skip_pages_threshold;

-- SET and RESET
SET skip_pages_threshold = 4;
:show
SHOW skip_pages_threshold;
SHOW vacuum_skip.skip_pages_threshold;
SELECT setting, source FROM pg_settings WHERE name = 'vacuum_skip.skip_pages_threshold';
SET vacuum_skip.skip_pages_threshold = 8;
:show
RESET skip_pages_threshold;
:show
SELECT setting, source FROM pg_settings WHERE name = 'vacuum_skip.skip_pages_threshold';
SET skip_pages_threshold TO 5;
RESET vacuum_skip.skip_pages_threshold;
:show
SET vacuum_skip.skip_pages_threshold = 6;
SET skip_pages_threshold TO DEFAULT;
:show
SET skip_pages_threshold = 7;
SET vacuum_skip.skip_pages_threshold TO DEFAULT;
:show

-- the lowest and highest threshold, and other ways to write a number
SET skip_pages_threshold = 0;
:show
SET vacuum_skip.skip_pages_threshold = 2147483647;
:show
SET skip_pages_threshold = 2147483647;
:show
SET skip_pages_threshold = '0x10';
:show
SET skip_pages_threshold = 4.4;
:show

-- RESET ALL and DISCARD ALL
RESET ALL;
:show
SET skip_pages_threshold = 4;
DISCARD ALL;
:show
SET vacuum_skip.skip_pages_threshold = 4;
RESET ALL;
:show

-- A transaction that commits, and one that does not
SET skip_pages_threshold = 3;
BEGIN;
SET skip_pages_threshold = 4;
:show
COMMIT;
:show
BEGIN;
SET skip_pages_threshold = 5;
ROLLBACK;
:show
BEGIN;
SET vacuum_skip.skip_pages_threshold = 6;
ROLLBACK;
:show
BEGIN;
RESET skip_pages_threshold;
:show
ROLLBACK;
:show
BEGIN;
RESET ALL;
:show
ROLLBACK;
:show
BEGIN;
SET skip_pages_threshold = 7;
SELECT 1/0;
COMMIT;
:show

-- SET LOCAL
BEGIN;
SET LOCAL skip_pages_threshold = 8;
:show
COMMIT;
:show
BEGIN;
SET LOCAL vacuum_skip.skip_pages_threshold = 8;
:show
COMMIT;
:show
BEGIN;
SET LOCAL skip_pages_threshold TO DEFAULT;
:show
COMMIT;
:show
-- outside of a transaction, it does nothing
SET LOCAL skip_pages_threshold = 9;
:show

-- SET LOCAL, then SET: the SET stays, whichever names were used.
BEGIN;
SET LOCAL skip_pages_threshold = 10;
SET vacuum_skip.skip_pages_threshold = 11;
:show
COMMIT;
:show
BEGIN;
SET LOCAL vacuum_skip.skip_pages_threshold = 12;
SET skip_pages_threshold = 13;
:show
COMMIT;
:show

-- SET, then SET LOCAL: the SET comes back at the end.
BEGIN;
SET skip_pages_threshold = 14;
SET LOCAL vacuum_skip.skip_pages_threshold = 15;
:show
COMMIT;
:show
BEGIN;
SET vacuum_skip.skip_pages_threshold = 16;
SET LOCAL skip_pages_threshold = 17;
:show
COMMIT;
:show

-- ... in any number
BEGIN;
SET skip_pages_threshold = 18;
SET LOCAL vacuum_skip.skip_pages_threshold = 19;
SET skip_pages_threshold = 20;
SET LOCAL skip_pages_threshold = 21;
:show
COMMIT;
:show
BEGIN;
SET LOCAL skip_pages_threshold = 22;
SET vacuum_skip.skip_pages_threshold = 23;
SET LOCAL skip_pages_threshold = 24;
:show
ROLLBACK;
:show
BEGIN;
SET LOCAL skip_pages_threshold = 25;
RESET vacuum_skip.skip_pages_threshold;
SET LOCAL skip_pages_threshold = 26;
:show
COMMIT;
:show

-- Savepoints
SET skip_pages_threshold = 3;
BEGIN;
SET skip_pages_threshold = 4;
SAVEPOINT one;
SET vacuum_skip.skip_pages_threshold = 5;
:show
SAVEPOINT two;
SET LOCAL skip_pages_threshold = 6;
:show
ROLLBACK TO two;
:show
RELEASE one;
:show
COMMIT;
:show
BEGIN;
SAVEPOINT one;
SET LOCAL vacuum_skip.skip_pages_threshold = 6;
SAVEPOINT two;
SET skip_pages_threshold = 7;
RELEASE two;
:show
ROLLBACK TO one;
:show
SET LOCAL skip_pages_threshold = 8;
RELEASE one;
:show
COMMIT;
:show
BEGIN;
SET LOCAL skip_pages_threshold = 9;
SAVEPOINT one;
SET skip_pages_threshold = 10;
RELEASE one;
SET LOCAL vacuum_skip.skip_pages_threshold = 11;
:show
COMMIT;
:show
-- an error within a savepoint
BEGIN;
SET skip_pages_threshold = 12;
SAVEPOINT one;
SET skip_pages_threshold = 13;
SET vacuum_skip.skip_pages_threshold = 'x';
ROLLBACK TO one;
:show
COMMIT;
:show

-- set_config()
SELECT set_config('skip_pages_threshold', '4', false);
:show
SELECT set_config('vacuum_skip.skip_pages_threshold', '5', false);
:show
SELECT set_config('skip_pages_threshold', '6', true);
:show
BEGIN;
SELECT set_config('skip_pages_threshold', '7', true);
:show
SELECT set_config('vacuum_skip.skip_pages_threshold', '8', false);
:show
SELECT set_config('skip_pages_threshold', NULL, true);
:show
COMMIT;
:show
SELECT set_config('skip_pages_threshold', NULL, false);
:show
-- a value that reaches the end of the query only
SELECT set_config('skip_pages_threshold', '9', true), current_setting('vacuum_skip.skip_pages_threshold') AS long;
:show

-- Setting the view sets the setting.
UPDATE pg_settings SET setting = '10' WHERE name = 'vacuum_skip.skip_pages_threshold';
:show

RESET skip_pages_threshold;
:show

-- Functions with a SET clause.  Within, the clause's value; afterwards the
-- caller's.  A SET LOCAL within ends with the function, and so does the clause;
-- a plain SET within overrides the clause, and stays.
CREATE FUNCTION vs_both() RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT current_setting('skip_pages_threshold') || ' ' || current_setting('vacuum_skip.skip_pages_threshold') $$;
CREATE FUNCTION vs_short() RETURNS text LANGUAGE sql VOLATILE
  SET skip_pages_threshold = 4 AS 'SELECT vs_both()';
CREATE FUNCTION vs_long() RETURNS text LANGUAGE sql VOLATILE
  SET vacuum_skip.skip_pages_threshold = 5 AS 'SELECT vs_both()';
SET skip_pages_threshold = 3;
SELECT vs_short(), vs_both();
SELECT vs_long(), vs_both();
:show

-- one within another, with both names
CREATE FUNCTION vs_nested(code text) RETURNS text LANGUAGE plpgsql VOLATILE
  SET skip_pages_threshold = 6 AS
$$
DECLARE
  inner_value text;
BEGIN
  EXECUTE code INTO inner_value;
  RETURN inner_value || ' in ' || vs_both();
END
$$;
SELECT vs_nested('SELECT vs_long()');
SELECT vs_nested('SELECT vs_short()');
SELECT vs_nested('SELECT vs_nested(''SELECT vs_long()'')');
:show

-- with both names in one clause: the last one counts
CREATE FUNCTION vs_twice() RETURNS text LANGUAGE sql VOLATILE
  SET skip_pages_threshold = 7 SET vacuum_skip.skip_pages_threshold = 8 AS 'SELECT vs_both()';
SELECT vs_twice();
ALTER FUNCTION vs_twice() RESET ALL;
ALTER FUNCTION vs_twice() SET vacuum_skip.skip_pages_threshold = 8 SET skip_pages_threshold = 7;
SELECT vs_twice();
:show

-- SETs within
CREATE FUNCTION vs_set(code text) RETURNS text LANGUAGE plpgsql VOLATILE AS
$$ BEGIN EXECUTE code; RETURN vs_both(); END $$;
ALTER FUNCTION vs_set(text) SET skip_pages_threshold = 9;
SELECT vs_set('SET LOCAL skip_pages_threshold = 10');
:show
SELECT vs_set('SET LOCAL vacuum_skip.skip_pages_threshold = 11');
:show
SELECT vs_set('SET skip_pages_threshold = 12');
:show
SELECT vs_set('SET vacuum_skip.skip_pages_threshold = 13');
:show
ALTER FUNCTION vs_set(text) RESET ALL;
ALTER FUNCTION vs_set(text) SET vacuum_skip.skip_pages_threshold = 14;
SELECT vs_set('SET LOCAL skip_pages_threshold = 15');
:show
SELECT vs_set('SET skip_pages_threshold = 16');
:show
SELECT vs_set('RESET skip_pages_threshold');
:show
SELECT vs_set('SET skip_pages_threshold = 17; SET LOCAL vacuum_skip.skip_pages_threshold = 18');
:show
SELECT vs_set('SET LOCAL skip_pages_threshold = 19; SET vacuum_skip.skip_pages_threshold = 20');
:show
ALTER FUNCTION vs_set(text) RESET ALL;
ALTER FUNCTION vs_set(text) SET skip_pages_threshold = 21;
SELECT vs_set('SET vacuum_skip.skip_pages_threshold = 22; SET LOCAL skip_pages_threshold = 23');
:show
SELECT vs_set('SET LOCAL vacuum_skip.skip_pages_threshold = 24; SET skip_pages_threshold = 25');
:show
SET vacuum_skip.skip_pages_threshold = 3;

-- within a transaction that has set it
BEGIN;
SET LOCAL skip_pages_threshold = 17;
SELECT vs_long(), vs_both();
SELECT vs_short(), vs_both();
:show
COMMIT;
:show

-- a function that fails
CREATE FUNCTION vs_fails() RETURNS text LANGUAGE plpgsql VOLATILE
  SET skip_pages_threshold = 18 AS
$$ BEGIN PERFORM 1/0; END $$;
SELECT vs_fails();
:show
-- ... and is caught
DO $$
BEGIN
  SET skip_pages_threshold = 19;
  BEGIN
    SET vacuum_skip.skip_pages_threshold = 20;
    PERFORM vs_fails();
  EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'after the error: %', vs_both();
  END;
END
$$;
:show

-- SET ... FROM CURRENT stores the value that is shown.
CREATE FUNCTION vs_current() RETURNS text LANGUAGE sql VOLATILE
  SET skip_pages_threshold FROM CURRENT AS 'SELECT vs_both()';
RESET skip_pages_threshold;
SELECT proconfig FROM pg_proc WHERE proname = 'vs_current';
SELECT vs_current(), vs_both();

-- A clause is checked when the function is made.
CREATE FUNCTION vs_bad() RETURNS text LANGUAGE sql SET skip_pages_threshold = 'x' AS 'SELECT vs_both()';
:show
-- ... and what was checked then is not used later.
ALTER FUNCTION vs_short() SET skip_pages_threshold = 21;
RESET skip_pages_threshold;
:show

DROP FUNCTION vs_short, vs_long, vs_nested, vs_twice, vs_set, vs_fails, vs_current, vs_both;

-- Names that look like ours but are not: they would never take effect.
SET vacuum_skip.skip_page_threshold = 4;
SET vacuum_skip.nonsense = 'on';
SELECT current_setting('vacuum_skip.nonsense', true) IS NULL AS unknown;

-- Bad values.  Both names refuse them in the same way and keep their value.
SET skip_pages_threshold = 3;
\set VERBOSITY default
SET skip_pages_threshold = -2;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.skip_pages_threshold = -2;
\echo :LAST_ERROR_SQLSTATE
SET skip_pages_threshold = 2147483648;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.skip_pages_threshold = 2147483648;
\echo :LAST_ERROR_SQLSTATE
SET skip_pages_threshold = 'x';
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.skip_pages_threshold = 'x';
\echo :LAST_ERROR_SQLSTATE
SET skip_pages_threshold = '';
\echo :LAST_ERROR_SQLSTATE
SET skip_pages_threshold = '4kB';
\echo :LAST_ERROR_SQLSTATE
SET skip_pages_threshold = 4, 5;
\echo :LAST_ERROR_SQLSTATE
:show

-- Automatic choice of the threshold is not there yet.
SET skip_pages_threshold = -1;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.skip_pages_threshold = -1;
\echo :LAST_ERROR_SQLSTATE
SELECT set_config('skip_pages_threshold', '-1', false);
\echo :LAST_ERROR_SQLSTATE
:show
RESET skip_pages_threshold;

-- vacuum_skip.read_mode
SHOW vacuum_skip.read_mode;
SET vacuum_skip.read_mode = sync;
SHOW vacuum_skip.read_mode;
SET vacuum_skip.read_mode = 'STREAM';
SHOW vacuum_skip.read_mode;
SET vacuum_skip.read_mode = strem;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.read_mode = '';
\echo :LAST_ERROR_SQLSTATE
SHOW vacuum_skip.read_mode;
RESET vacuum_skip.read_mode;

-- vacuum_skip.vacuum_engine
SHOW vacuum_skip.vacuum_engine;
SET vacuum_skip.vacuum_engine = always;
SHOW vacuum_skip.vacuum_engine;
SET vacuum_skip.vacuum_engine = 'Never';
SHOW vacuum_skip.vacuum_engine;
SET vacuum_skip.vacuum_engine = on;
\echo :LAST_ERROR_SQLSTATE
RESET vacuum_skip.vacuum_engine;
SHOW vacuum_skip.vacuum_engine;

-- vacuum_skip.read_ahead, a number of blocks
SHOW vacuum_skip.read_ahead;
SET vacuum_skip.read_ahead = 0;
SHOW vacuum_skip.read_ahead;
SET vacuum_skip.read_ahead = '1MB';
SHOW vacuum_skip.read_ahead;
SELECT setting, unit FROM pg_settings WHERE name = 'vacuum_skip.read_ahead';
SET vacuum_skip.read_ahead = 8192;
SHOW vacuum_skip.read_ahead;
SET vacuum_skip.read_ahead = 8193;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.read_ahead = -1;
\echo :LAST_ERROR_SQLSTATE
SET vacuum_skip.read_ahead = '1min';
\echo :LAST_ERROR_SQLSTATE
SHOW vacuum_skip.read_ahead;
RESET vacuum_skip.read_ahead;
SHOW vacuum_skip.read_ahead;

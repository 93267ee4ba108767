--
-- Both names of the threshold in parallel workers
--
SET debug_parallel_query = on;
CREATE FUNCTION vs_both() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT current_setting('skip_pages_threshold') || ' ' || current_setting('vacuum_skip.skip_pages_threshold') $$;
CREATE FUNCTION vs_short() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET skip_pages_threshold = 4 AS $$ BEGIN RETURN vs_both(); END $$;
CREATE FUNCTION vs_long() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET vacuum_skip.skip_pages_threshold = 5 AS $$ BEGIN RETURN vs_both(); END $$;
CREATE FUNCTION vs_twice() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE
  SET vacuum_skip.skip_pages_threshold = 6 SET skip_pages_threshold = 7 AS $$ BEGIN RETURN vs_both(); END $$;
-- It runs in a worker:
EXPLAIN (COSTS OFF) SELECT vs_both();

-- A worker has what its leader has.
SELECT vs_both();
SET skip_pages_threshold = 2;
SELECT vs_both();
SET vacuum_skip.skip_pages_threshold = 3;
SELECT vs_both();
BEGIN;
SET LOCAL skip_pages_threshold = 8;
SELECT vs_both();
COMMIT;
SELECT vs_both();

-- A function's SET clause counts in a worker, too.
SELECT vs_short(), vs_both();
SELECT vs_long(), vs_both();
SELECT vs_twice(), vs_both();

-- Where no worker is to be had, the leader does its work.
SET max_parallel_workers = 0;
SELECT vs_both();
SELECT vs_short(), vs_both();
SELECT vs_long(), vs_both();
SELECT vs_twice(), vs_both();
RESET max_parallel_workers;

-- A worker cannot set anything for the session.
CREATE FUNCTION vs_set(name text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS
$$ BEGIN PERFORM set_config(name, '9', false); RETURN vs_both(); END $$;
\set VERBOSITY terse
SELECT vs_set('skip_pages_threshold');
SELECT vs_set('vacuum_skip.skip_pages_threshold');
\set VERBOSITY default
SELECT vs_both();

RESET debug_parallel_query;
DROP FUNCTION vs_short, vs_long, vs_twice, vs_set, vs_both;

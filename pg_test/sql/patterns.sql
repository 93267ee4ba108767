--
-- All thresholds on all sorts of patterns, against the rule in plain SQL over
-- pg_visibility_map, and against what the server's own VACUUM reads
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
RESET client_min_messages;
CREATE SCHEMA vs_patterns;
SET search_path = vs_patterns, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set await_others :abs_srcdir '/include/await_others.sql'
\i :await_others

\set patterns :abs_srcdir '/include/patterns.sql'
\i :patterns

CREATE UNLOGGED TABLE t (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);

-- Each block's fate with a threshold, by the rule: skippable is what is
-- all-frozen or, unless the vacuum is aggressive, all-visible, but not the last
-- block.  Skipped is what lies in a run of at least so many skippable blocks.
CREATE FUNCTION expected_blocks(rel regclass, of int, is_aggressive boolean)
RETURNS TABLE (block bigint, skipped boolean, reason text, run bigint) LANGUAGE sql AS
$$
  WITH bits AS (
    SELECT blkno, all_visible, all_visible AND all_frozen AS frozen,
           all_visible AND (all_frozen OR NOT is_aggressive) AS by_bits,
           blkno = max(blkno) OVER () AS is_last
      FROM pg_visibility_map(rel)),
  skippable AS (
    SELECT *, by_bits AND NOT is_last AS skippable,
           blkno - row_number() OVER (PARTITION BY by_bits AND NOT is_last ORDER BY blkno) AS run
      FROM bits),
  runs AS (
    SELECT *, skippable AND count(*) OVER (PARTITION BY skippable, run) >= of AS skipped,
           bool_and(frozen) OVER (PARTITION BY skippable, run) AS run_frozen
      FROM skippable)
  SELECT blkno, skipped,
         CASE WHEN skipped AND run_frozen THEN 'all-frozen'
              WHEN skipped THEN 'all-visible'
              WHEN skippable THEN 'below threshold'
              WHEN by_bits THEN 'last block'
              WHEN all_visible THEN 'all-visible'
              ELSE 'not all-visible' END,
         run
    FROM runs
$$;

-- vacuum_skip_plan from that, but for the percentage
CREATE FUNCTION expected_plan(rel regclass, thresholds int[], is_aggressive boolean)
RETURNS TABLE (threshold int, rel_pages bigint, scanned_pages bigint, skipped_pages bigint, skipped_ranges bigint,
               skippable_pages_scanned bigint, read_runs bigint, skipped_all_visible boolean) LANGUAGE sql AS
$$
  SELECT of, count(*), count(*) FILTER (WHERE NOT skipped), count(*) FILTER (WHERE skipped),
         count(DISTINCT run) FILTER (WHERE skipped),
         count(*) FILTER (WHERE reason IN ('below threshold', 'last block')),
         count(*) FILTER (WHERE NOT skipped AND before_skipped),
         coalesce(bool_or(skipped AND reason = 'all-visible'), false)
    FROM unnest(thresholds) AS of,
         LATERAL (SELECT *, lag(skipped, 1, true) OVER (ORDER BY block) AS before_skipped
                    FROM expected_blocks(rel, of, is_aggressive)) AS b
   GROUP BY of
$$;

-- Compares all functions with that, for 15 thresholds.  Warns of what is wrong,
-- and notes some numbers, to show that there is something to compare.
CREATE PROCEDURE compare(rel regclass) LANGUAGE plpgsql AS
$$
DECLARE
  thresholds int[] := '{0,1,2,3,4,7,8,16,31,32,33,63,64,65,1000}';
  is_aggressive boolean;
  of int;
BEGIN
  FOREACH is_aggressive IN ARRAY '{f,t}'::boolean[] LOOP
    PERFORM set_config('vacuum_freeze_table_age', CASE WHEN is_aggressive THEN '0' ELSE '150000000' END, true);

    CREATE TEMPORARY TABLE expected ON COMMIT DROP AS SELECT * FROM expected_plan(rel, thresholds, is_aggressive);
    CREATE TEMPORARY TABLE plan ON COMMIT DROP AS SELECT * FROM vacuum_skip_plan(rel, thresholds);
    IF EXISTS ((TABLE expected EXCEPT
                SELECT threshold, rel_pages, scanned_pages, skipped_pages, skipped_ranges,
                       skippable_pages_scanned, read_runs, skipped_all_visible FROM plan))
       OR (SELECT count(*) FROM plan) <> cardinality(thresholds)
       OR EXISTS (SELECT FROM plan WHERE abs(scanned_percent * rel_pages - 100 * scanned_pages) > 1e-6) THEN
      RAISE WARNING 'vacuum_skip_plan is wrong, aggressive: %', is_aggressive;
    END IF;

    FOREACH of IN ARRAY thresholds LOOP
      -- every block in exactly one range, with its reason
      IF EXISTS ((SELECT block, skipped, reason FROM expected_blocks(rel, of, is_aggressive)
                  EXCEPT ALL
                  SELECT block, action = 'skip', reason
                    FROM vacuum_skip_ranges(rel, of), generate_series(first_block, last_block) AS block))
         OR (SELECT sum(pages) FROM vacuum_skip_ranges(rel, of)) <> (SELECT count(*) FROM pg_visibility_map(rel))
         -- in order, without gaps, and each as long as it can be
         OR EXISTS (SELECT FROM (SELECT *, lag(last_block, 1, -1) OVER rows AS before,
                                        lag(reason) OVER rows AS reason_before, lag(action) OVER rows AS action_before
                                   FROM vacuum_skip_ranges(rel, of) WITH ORDINALITY
                                 WINDOW rows AS (ORDER BY ordinality)) AS r
                     WHERE first_block <> before + 1 OR pages <> last_block - first_block + 1 OR pages < 1
                        OR (reason, action) = (reason_before, action_before)) THEN
        RAISE WARNING 'vacuum_skip_ranges is wrong for %, aggressive: %', of, is_aggressive;
      END IF;
      -- both ways of reading
      IF EXISTS ((SELECT is_aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges,
                         skippable_pages_scanned, skipped_all_visible, 'stream' FROM expected WHERE threshold = of
                  UNION ALL
                  SELECT is_aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges,
                         skippable_pages_scanned, skipped_all_visible, 'sync' FROM expected WHERE threshold = of)
                 EXCEPT
                 SELECT aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges,
                        skippable_pages_scanned, skipped_all_visible, read_mode
                   FROM unnest('{stream,sync}'::text[]) AS mode, vacuum_skip_scan(rel, of, mode)) THEN
        RAISE WARNING 'vacuum_skip_scan is wrong for %, aggressive: %', of, is_aggressive;
      END IF;
      -- the picture's first line
      IF NOT EXISTS (SELECT FROM vacuum_skip_map(rel, of) AS line, expected
                      WHERE threshold = of
                        AND line LIKE format('%%: threshold %s reads %s of %s pages (%%', of, scanned_pages, rel_pages)) THEN
        RAISE WARNING 'vacuum_skip_map is wrong for %, aggressive: %', of, is_aggressive;
      END IF;
    END LOOP;

    -- the histogram: every run of skippable blocks once, in powers of two
    CREATE TEMPORARY TABLE runs ON COMMIT DROP AS
      SELECT count(*) AS length FROM expected_blocks(rel, 0, is_aggressive) WHERE skipped GROUP BY run;
    IF EXISTS (SELECT FROM vacuum_skip_gaps(rel) WITH ORDINALITY
                WHERE from_pages <> (2 ^ (ordinality - 1))::bigint OR to_pages <> 2 * from_pages - 1
                   OR (ranges, pages) <> (SELECT count(*), coalesce(sum(length), 0) FROM runs
                                           WHERE length BETWEEN from_pages AND to_pages))
       OR (SELECT coalesce(sum(pages), 0) FROM vacuum_skip_gaps(rel)) <> (SELECT coalesce(sum(length), 0) FROM runs) THEN
      RAISE WARNING 'vacuum_skip_gaps is wrong, aggressive: %', is_aggressive;
    END IF;

    RAISE NOTICE 'aggressive %: % of % pages with 1, % with 32', is_aggressive,
      (SELECT scanned_pages FROM plan WHERE threshold = 1), (SELECT rel_pages FROM plan WHERE threshold = 1),
      (SELECT scanned_pages FROM plan WHERE threshold = 32);
    DROP TABLE expected, plan, runs;
  END LOOP;
END
$$;

-- Nothing is all-visible; all is all-frozen, then all-visible only.  The lines
-- are notices of what was compared; a warning would say that something differs.
INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(0, 199) AS n;
CALL compare('t');
CALL await_others();
VACUUM (FREEZE) t;
CALL compare('t');
CALL paint('t', repeat('v', 200));
CALL compare('t');

-- Runs of every length from 1 to 18, frozen and not, and a dirty last block
CALL await_others();
VACUUM (FREEZE) t;
SELECT string_agg(repeat(CASE n % 3 WHEN 0 THEN 'v' ELSE 'f' END, n) || 'd', '' ORDER BY n) AS pattern
  FROM generate_series(1, 18) AS n \gset
CALL paint('t', :'pattern');
SELECT pattern('t');
CALL compare('t');

-- Runs of 31, 32, 33, 63 and the last block; then with page 0 dirty, which
-- shifts nothing but the first run
CALL await_others();
VACUUM (FREEZE) t;
CALL paint('t', repeat('f', 31) || 'd' || repeat('v', 32) || 'd' || repeat('f', 33) || 'd' || repeat('f', 63) || 'dvfvfv');
CALL compare('t');
CALL paint('t', 'd');
CALL compare('t');

-- One dirty page in so many, at every place within a group of 32 pages in turn
CALL await_others();
VACUUM (FREEZE) t;
SELECT string_agg(CASE WHEN n % 31 = 0 THEN 'd' WHEN n % 7 = 0 THEN 'v' ELSE 'f' END, '' ORDER BY n) AS pattern
  FROM generate_series(0, 199) AS n \gset
CALL paint('t', :'pattern');
CALL compare('t');

-- Pages as if thrown: 1 in 10 dirty, 1 in 5 not frozen; then more and more
-- dirty ones
CALL await_others();
VACUUM (FREEZE) t;
SELECT string_agg(substr('dvvfffffff', (n * n * 7919 + n * 104729) % 1009 % 10 + 1, 1), '' ORDER BY n) AS pattern
  FROM generate_series(0, 199) AS n \gset
CALL paint('t', :'pattern');
SELECT pattern('t');
CALL compare('t');
SELECT string_agg(substr('dffff', (n * n * 7907 + n * 31) % 1013 % 5 + 1, 1), '' ORDER BY n) AS pattern
  FROM generate_series(0, 199) AS n \gset
CALL paint('t', :'pattern');
CALL compare('t');
SELECT string_agg(substr('df', (n * n * 7901 + n * 17) % 1019 % 2 + 1, 1), '' ORDER BY n) AS pattern
  FROM generate_series(0, 199) AS n \gset
CALL paint('t', :'pattern');
CALL compare('t');

-- More ranges than vacuum_skip_ranges looks up at once (1000), and not as many
-- pages in each
INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(200, 2999) AS n;
CALL await_others();
VACUUM (FREEZE) t;
SELECT string_agg(substr('dfdfdffdv', n % 9 + 1, 1), '' ORDER BY n) AS pattern
  FROM generate_series(0, 2999) AS n \gset
CALL paint('t', :'pattern');
SELECT count(*) > 2000 AS many FROM vacuum_skip_ranges('t', 1);
CALL compare('t');

-- The server's VACUUM reads the same pages.  It can be seen which: told to
-- freeze whatever it finds, it makes all-frozen every page that it reads, and
-- leaves as it was every page that it skips.  Eager scans are switched off.
CREATE UNLOGGED TABLE v (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO v SELECT n, repeat('x', 500) FROM generate_series(0, 199) AS n;
CALL await_others();
VACUUM (FREEZE) v;
CALL paint('v', 'd' || repeat('v', 31) || 'd' || repeat('v', 32) || 'dd' || repeat('v', 33) || 'd' || repeat('v', 5)
                || 'd' || repeat('v', 64) || 'd' || repeat('v', 29));
SELECT pattern('v');
SELECT * FROM vacuum_skip_ranges('v', 32);
CREATE TABLE planned AS
  SELECT block FROM vacuum_skip_ranges('v', 32), generate_series(first_block, last_block) AS block WHERE action = 'skip';
SET vacuum_freeze_min_age = 0;
SET vacuum_max_eager_freeze_failure_rate = 0;
CALL await_others();
VACUUM v;
SELECT pattern('v');
SELECT count(*) AS skipped,
       count(*) FILTER (WHERE block IS NULL) AS not_planned, count(*) FILTER (WHERE blkno IS NULL) AS not_skipped
  FROM planned FULL JOIN (SELECT blkno FROM pg_visibility_map('v') WHERE NOT all_frozen) AS left_alone ON blkno = block;
-- An aggressive one reads them all.
SET vacuum_freeze_table_age = 0;
SELECT * FROM vacuum_skip_ranges('v', 32) WHERE reason = 'all-visible';
CALL await_others();
VACUUM v;
SELECT pattern('v');
SELECT * FROM vacuum_skip_ranges('v', 32);
RESET vacuum_freeze_table_age;
RESET vacuum_freeze_min_age;
RESET vacuum_max_eager_freeze_failure_rate;

SET client_min_messages = warning;
DROP SCHEMA vs_patterns CASCADE;
DROP EXTENSION vacuum_skip, pg_visibility;

--
-- vacuum_skip_map: the picture
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
RESET client_min_messages;
CREATE SCHEMA vs_map;
SET search_path = vs_map, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set await_others :abs_srcdir '/include/await_others.sql'
\i :await_others

-- A row has a page to itself, and row n is in block n.
CREATE UNLOGGED TABLE t (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(0, 239) AS n;
CALL await_others();
VACUUM (FREEZE) t;

-- Nothing but the last page would be read.
SELECT * FROM vacuum_skip_map('t', 1, 60, 4);

-- 12 cells of 20 pages, of which 0, 1, 2, 3, 5, 6, 10, 11, 19, 20, 0 and 1 would
-- be read: a shade is up to and with its share, and full is only what is full.
DELETE FROM t WHERE id % 20 < ('{0,1,2,3,5,6,10,11,19,20,0,0}'::int[])[id / 20 + 1];
SELECT block / 20 AS cell, sum(pages_read) AS read
  FROM (SELECT block, (action = 'scan')::int AS pages_read
          FROM vacuum_skip_ranges('t', 1), generate_series(first_block, last_block) AS block) AS blocks
 GROUP BY cell ORDER BY cell;
SELECT * FROM vacuum_skip_map('t', 1, 12, 1);
-- the same cells in other rows
SELECT * FROM vacuum_skip_map('t', 1, 4, 3);
-- with a threshold that fills the small gaps
SELECT * FROM vacuum_skip_map('t', 19, 12, 1);
SELECT * FROM vacuum_skip_map('t', 1000, 12, 1);

-- Cells of unequal size: 240 pages in 7 cells
SELECT * FROM vacuum_skip_map('t', 1, 7, 1);
-- one cell for all
SELECT * FROM vacuum_skip_map('t', 1, 1, 1);
-- more cells than pages: a cell for each page, and a last row that is shorter
SELECT * FROM vacuum_skip_map('t', 1, 100, 100);
-- the default: 64 by 16 for the 240 pages
SELECT * FROM vacuum_skip_map('t', 1);
-- the session's threshold
SET skip_pages_threshold = 1000;
SELECT * FROM vacuum_skip_map('t', width => 80, height => 2);
RESET skip_pages_threshold;

-- A name that needs quotes
ALTER TABLE t RENAME TO "It's ""t""";
SELECT * FROM vacuum_skip_map('"It''s ""t"""', 1, 12, 1) LIMIT 1;

SET client_min_messages = warning;
DROP SCHEMA vs_map CASCADE;
DROP EXTENSION vacuum_skip, pg_visibility;

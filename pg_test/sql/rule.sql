--
-- The rule: which blocks VACUUM reads and which it skips, on tables small
-- enough to see every block
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
RESET client_min_messages;
CREATE SCHEMA vs_rule;
SET search_path = vs_rule, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set await_others :abs_srcdir '/include/await_others.sql'
\i :await_others

\set patterns :abs_srcdir '/include/patterns.sql'
\i :patterns

-- Skippable ranges of 1, 2, 3, 4 and 7 pages, and a last page that is
-- all-frozen.
CREATE UNLOGGED TABLE t (id int, filler text STORAGE PLAIN) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(0, 23) AS n;
CALL await_others();
VACUUM (FREEZE) t;
SELECT pattern('t');
CALL paint('t', 'dfdffdfvfdvvvvddffffffff');
SELECT pattern('t');

-- Every threshold from one that skips whatever can be skipped to one that skips
-- nothing.  A range that has some page that is not all-frozen is "all-visible".
SELECT * FROM vacuum_skip_ranges('t', 0);
SELECT * FROM vacuum_skip_ranges('t', 1);
SELECT * FROM vacuum_skip_ranges('t', 2);
SELECT * FROM vacuum_skip_ranges('t', 3);
SELECT * FROM vacuum_skip_ranges('t', 4);
SELECT * FROM vacuum_skip_ranges('t', 5);
SELECT * FROM vacuum_skip_ranges('t', 7);
SELECT * FROM vacuum_skip_ranges('t', 8);

-- The same in numbers.  From 5 on no page is skipped that is not all-frozen, so
-- that a VACUUM could advance relfrozenxid.
SELECT * FROM vacuum_skip_plan('t', '{0,1,2,3,4,5,7,8,2147483647}');

-- The lengths of the skippable ranges.  The last block is in none of them.
SELECT * FROM vacuum_skip_gaps('t');

-- The same in pictures, a character a page
SELECT * FROM vacuum_skip_map('t', 0, 24, 1);
SELECT * FROM vacuum_skip_map('t', 3, 12, 2);
SELECT * FROM vacuum_skip_map('t', 8, 24, 1);

-- The scan reads what was planned.  The dead tuples are the versions before the
-- update of the rows on the 6 pages that are not all-visible.
CALL await_others();
SELECT threshold, aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned,
       skipped_all_visible, live_tuples, dead_tuples
  FROM unnest('{0,1,2,3,4,5,7,8,2147483647}'::int[]) AS of, vacuum_skip_scan('t', of) ORDER BY of;

-- An aggressive vacuum reads what is not all-frozen.
SET vacuum_freeze_table_age = 0;
SELECT * FROM vacuum_skip_ranges('t', 0);
SELECT * FROM vacuum_skip_ranges('t', 2);
SELECT * FROM vacuum_skip_plan('t', '{0,1,2,3,4,5,7,8}');
SELECT * FROM vacuum_skip_gaps('t');
SELECT * FROM vacuum_skip_map('t', 0, 24, 1);
SELECT threshold, aggressive, rel_pages, scanned_pages, skipped_pages, skipped_ranges, skippable_pages_scanned,
       skipped_all_visible, live_tuples, dead_tuples
  FROM unnest('{0,1,2,3,4,5,7,8}'::int[]) AS of, vacuum_skip_scan('t', of) ORDER BY of;
RESET vacuum_freeze_table_age;
-- One may be aggressive for the sake of multixacts alone.  What a table says to
-- autovacuum does not count for a vacuum that is called by hand.
SELECT aggressive FROM vacuum_skip_scan('t');
SET vacuum_multixact_freeze_table_age = 0;
SELECT aggressive, skipped_pages FROM vacuum_skip_scan('t', 0);
RESET vacuum_multixact_freeze_table_age;
ALTER TABLE t SET (autovacuum_freeze_table_age = 0);
SELECT aggressive FROM vacuum_skip_scan('t');
ALTER TABLE t RESET (autovacuum_freeze_table_age);

-- It is the session's threshold that counts where none is given.
SET skip_pages_threshold = 4;
SELECT * FROM vacuum_skip_ranges('t') WHERE action = 'skip';
SELECT * FROM vacuum_skip_map('t', width => 24);
RESET skip_pages_threshold;
SELECT * FROM vacuum_skip_ranges('t') WHERE action = 'skip';

-- The last block: read in any case.  Its bits only tell why.
CREATE UNLOGGED TABLE last (LIKE t INCLUDING ALL) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO last SELECT n, repeat('x', 500) FROM generate_series(0, 5) AS n;
CALL await_others();
VACUUM (FREEZE) last;
SELECT * FROM vacuum_skip_ranges('last', 0);
CALL paint('last', 'dffffv');
SELECT pattern('last');
SELECT * FROM vacuum_skip_ranges('last', 0);
SELECT * FROM vacuum_skip_plan('last', '{0,4,5}');
SET vacuum_freeze_table_age = 0;
SELECT * FROM vacuum_skip_ranges('last', 0);
SELECT * FROM vacuum_skip_plan('last', '{0,4,5}');
RESET vacuum_freeze_table_age;
CALL paint('last', 'dffffd');
SELECT pattern('last');
SELECT * FROM vacuum_skip_ranges('last', 0);
SELECT * FROM vacuum_skip_plan('last', '{0,4,5}');
-- one page more: what was the last block is one of many
CALL await_others();
VACUUM (FREEZE) last;
SELECT * FROM vacuum_skip_plan('last', '{5}');
INSERT INTO last VALUES (6, repeat('x', 500));
SELECT pattern('last');
SELECT * FROM vacuum_skip_ranges('last', 6);
SELECT * FROM vacuum_skip_ranges('last', 7);

-- A plain VACUUM marks pages all-visible, and freezes nothing so young.
CREATE UNLOGGED TABLE young (LIKE t INCLUDING ALL) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO young SELECT n, repeat('x', 500) FROM generate_series(0, 5) AS n;
CALL await_others();
VACUUM young;
SELECT pattern('young');
SELECT * FROM vacuum_skip_ranges('young', 1);
SELECT * FROM vacuum_skip_plan('young', '{1}');

-- Any change of a row makes its page unskippable, and nothing else does.
CALL await_others();
VACUUM (FREEZE) young;
SELECT count(*) FROM young;
SELECT pattern('young');
UPDATE young SET filler = 'y' WHERE id = 1;
DELETE FROM young WHERE id = 3;
SELECT pattern('young');
SELECT * FROM vacuum_skip_ranges('young', 1);
SELECT * FROM vacuum_skip_ranges('young', 2);

SET client_min_messages = warning;
DROP SCHEMA vs_rule CASCADE;
DROP EXTENSION vacuum_skip, pg_visibility;

-- What is not generated from the Rust code: estimates of rows, a view, and comments.

ALTER FUNCTION vacuum_skip_scan(regclass, int, text) ROWS 1;
ALTER FUNCTION vacuum_skip_plan(regclass, int[]) ROWS 8;
ALTER FUNCTION vacuum_skip_map(regclass, int, int, int) ROWS 19;
ALTER FUNCTION vacuum_skip_gaps(regclass) ROWS 16;
ALTER FUNCTION vacuum_skip_threshold(regclass) ROWS 1;

-- The provider takes only labels with one number in them.
CREATE VIEW vacuum_skip_tables AS
SELECT objoid::pg_catalog.regclass AS rel, pg_catalog.substring(label, '[0-9]+')::int AS threshold
  FROM pg_catalog.pg_seclabel
 WHERE provider = 'vacuum_skip' AND classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objsubid = 0;
GRANT SELECT ON vacuum_skip_tables TO PUBLIC;

COMMENT ON FUNCTION vacuum_skip_scan(regclass, int, text) IS
'reads a table as the first phase of VACUUM would with this threshold, without its changes; one row of what was read and found';
COMMENT ON FUNCTION vacuum_skip_plan(regclass, int[]) IS
'what VACUUM would read with each threshold, from the visibility map alone; a row per threshold';
COMMENT ON FUNCTION vacuum_skip_ranges(regclass, int) IS
'the ranges of blocks that VACUUM would scan or skip with this threshold, and why; a row per range';
COMMENT ON FUNCTION vacuum_skip_map(regclass, int, int, int) IS
'a picture of the parts of a table that VACUUM would read with this threshold';
COMMENT ON FUNCTION vacuum_skip_gaps(regclass) IS
'histogram of the skippable ranges of a table by length, in powers of two';
COMMENT ON FUNCTION vacuum_skip_threshold(regclass) IS
'the threshold in force for a VACUUM of a table in this session, and its source: command, session, table or default';
COMMENT ON FUNCTION vacuum_skip_set_threshold(regclass, int) IS
'gives a table a threshold of its own, kept as its security label of provider vacuum_skip; NULL removes it';
COMMENT ON VIEW vacuum_skip_tables IS 'tables of this database that have a threshold of their own';
COMMENT ON COLUMN vacuum_skip_tables.rel IS 'the table';
COMMENT ON COLUMN vacuum_skip_tables.threshold IS 'its threshold';

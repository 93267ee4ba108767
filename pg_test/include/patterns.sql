-- A row has a page to itself (with fillfactor 10 and a filler of 500 bytes), and row n is in block n.
-- From all pages all-frozen, this makes those of a pattern: f is all-frozen,
-- v all-visible but not all-frozen, and d (dirty) not all-visible.  A row lock
-- clears all-frozen alone.
CREATE PROCEDURE paint(rel regclass, pattern text) LANGUAGE plpgsql AS
$$
BEGIN
  EXECUTE format('SELECT FROM %s WHERE substr($1, id + 1, 1) = ''v'' FOR UPDATE', rel) USING pattern;
  EXECUTE format('UPDATE %s SET id = id WHERE substr($1, id + 1, 1) = ''d''', rel) USING pattern;
END
$$;
-- The pattern of a relation, by its visibility map
CREATE FUNCTION pattern(rel regclass) RETURNS text LANGUAGE sql AS
$$
  SELECT string_agg(CASE WHEN all_frozen AND all_visible THEN 'f' WHEN all_frozen THEN '?'
                         WHEN all_visible THEN 'v' ELSE 'd' END, '' ORDER BY blkno)
    FROM pg_visibility_map(rel)
$$;

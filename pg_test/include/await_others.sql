-- VACUUM marks as all-visible what every session sees.  This waits until none is
-- left that might still see less, such as an autovacuum of this database.
CREATE PROCEDURE await_others() LANGUAGE plpgsql AS
$$
BEGIN
  FOR i IN 1 .. 6000 LOOP
    PERFORM pg_stat_clear_snapshot();
    IF NOT EXISTS (SELECT FROM pg_stat_activity
                    WHERE pid <> pg_backend_pid() AND datname = current_database()
                      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) THEN
      RETURN;
    END IF;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RAISE 'another session has held a snapshot for a minute';
END
$$;

--
-- Who may look: roles with MAINTAIN on the relation, and members of
-- pg_stat_scan_tables
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vacuum_skip;
RESET client_min_messages;
CREATE SCHEMA vs_privileges;
GRANT USAGE ON SCHEMA vs_privileges TO PUBLIC;
SET search_path = vs_privileges, public;

CREATE ROLE regress_vs_owner;
CREATE ROLE regress_vs_nobody;
CREATE ROLE regress_vs_reader;
CREATE ROLE regress_vs_writer;
CREATE ROLE regress_vs_granted;
CREATE ROLE regress_vs_maintainer IN ROLE pg_maintain;
CREATE ROLE regress_vs_scanner IN ROLE pg_stat_scan_tables;
CREATE ROLE regress_vs_monitor IN ROLE pg_monitor;
CREATE ROLE regress_vs_noinherit NOINHERIT IN ROLE pg_stat_scan_tables;

CREATE TABLE t (id int) WITH (autovacuum_enabled = off);
INSERT INTO t VALUES (1);
ALTER TABLE t OWNER TO regress_vs_owner;
GRANT SELECT ON t TO regress_vs_reader;
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON t TO regress_vs_writer;
GRANT MAINTAIN ON t TO regress_vs_granted;

-- what each of the functions answers the current role, for a relation
CREATE FUNCTION answers(rel regclass DEFAULT 't')
RETURNS TABLE (who name, scan text, plan text, ranges text, map text, gaps text, threshold text) LANGUAGE plpgsql AS
$$
DECLARE
  function text;
  answer text[];
BEGIN
  FOREACH function IN ARRAY '{scan,plan,ranges,map,gaps,threshold}'::text[] LOOP
    BEGIN
      EXECUTE format('SELECT FROM vacuum_skip_%s($1)', function) USING rel;
      answer := answer || 'ok'::text;
    EXCEPTION WHEN OTHERS THEN
      answer := answer || sqlstate::text;
    END;
  END LOOP;
  RETURN QUERY SELECT current_user, answer[1], answer[2], answer[3], answer[4], answer[5], answer[6];
END
$$;

SELECT scan, plan, ranges, map, gaps, threshold FROM answers();

-- Nobody, whoever may only read, and whoever may do all but MAINTAIN
SET ROLE regress_vs_nobody;
SELECT * FROM vacuum_skip_scan('t');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('t');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_ranges('t');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('t');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_gaps('t');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM answers();
SET ROLE regress_vs_reader;
SELECT * FROM answers();
SELECT * FROM vacuum_skip_scan('t');
\echo :LAST_ERROR_SQLSTATE
SET ROLE regress_vs_writer;
SELECT * FROM answers();

-- The privilege comes before everything else that is to be said about the
-- relation: that it is of the wrong kind, for one.
RESET ROLE;
CREATE VIEW v AS SELECT 1;
CREATE MATERIALIZED VIEW m AS SELECT 1;
CREATE SEQUENCE s;
CREATE INDEX i ON t (id);
CREATE TABLE p (id int) PARTITION BY RANGE (id);
SET ROLE regress_vs_nobody;
SELECT * FROM vacuum_skip_scan('v');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_plan('m');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_ranges('s');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_map('i');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM vacuum_skip_gaps('p');
\echo :LAST_ERROR_SQLSTATE

-- These may.
SET ROLE regress_vs_owner;
SELECT * FROM answers();
SET ROLE regress_vs_granted;
SELECT * FROM answers();
SET ROLE regress_vs_maintainer;
SELECT * FROM answers();
SET ROLE regress_vs_scanner;
SELECT * FROM answers();
SET ROLE regress_vs_monitor;
SELECT * FROM answers();
-- A member that does not inherit has to change to the role first.
SET ROLE regress_vs_noinherit;
SELECT * FROM answers();
RESET ROLE;

-- The privilege can be lost again.
REVOKE MAINTAIN ON t FROM regress_vs_granted;
SET ROLE regress_vs_granted;
SELECT * FROM answers();
RESET ROLE;
REVOKE MAINTAIN ON t FROM regress_vs_owner;
SET ROLE regress_vs_owner;
SELECT * FROM answers();
RESET ROLE;
GRANT MAINTAIN ON t TO PUBLIC;
SET ROLE regress_vs_nobody;
SELECT * FROM answers();
RESET ROLE;
REVOKE MAINTAIN ON t FROM PUBLIC;

-- Catalogs and other roles' tables: only those whose role says so
SET ROLE regress_vs_nobody;
SELECT * FROM answers('pg_class');
SET ROLE regress_vs_granted;
SELECT * FROM answers('pg_class');
SET ROLE regress_vs_maintainer;
SELECT * FROM answers('pg_class');
SET ROLE regress_vs_scanner;
SELECT * FROM answers('pg_class');
SELECT * FROM answers('pg_database');
SELECT * FROM answers('pg_authid');
RESET ROLE;

-- The role that counts is the one in effect: within SECURITY DEFINER, that of
-- the function's owner.
CREATE FUNCTION definer() RETURNS text SECURITY DEFINER LANGUAGE sql
  AS $$ SELECT scan FROM vs_privileges.answers('vs_privileges.t') $$;
SET ROLE regress_vs_nobody;
SELECT definer();
RESET ROLE;
ALTER FUNCTION definer() OWNER TO regress_vs_nobody;
SELECT definer();

-- EXECUTE can be revoked as with any function.
REVOKE EXECUTE ON FUNCTION vacuum_skip_gaps FROM PUBLIC;
SET ROLE regress_vs_scanner;
SELECT * FROM vacuum_skip_gaps('t');
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA vs_privileges CASCADE;
DROP EXTENSION vacuum_skip;
DROP ROLE regress_vs_owner, regress_vs_nobody, regress_vs_reader, regress_vs_writer, regress_vs_granted,
          regress_vs_maintainer, regress_vs_scanner, regress_vs_monitor, regress_vs_noinherit;

--
-- Where a new session gets the threshold from: the database's, the role's, the
-- connection's and the server's settings.  Both names must show it, and RESET
-- of either must go back to it.
--
\set show 'SELECT current_setting(\'skip_pages_threshold\') AS short, current_setting(\'vacuum_skip.skip_pages_threshold\') AS long;'
SELECT current_database() AS database, current_user AS admin \gset
CREATE ROLE regress_vs_user LOGIN;
:show

-- the database's
ALTER DATABASE :"database" SET vacuum_skip.skip_pages_threshold = 5;
:show
\c -
:show
SELECT source, reset_val FROM pg_settings WHERE name = 'vacuum_skip.skip_pages_threshold';
SET skip_pages_threshold = 4;
:show
RESET skip_pages_threshold;
:show
SET skip_pages_threshold = 4;
RESET vacuum_skip.skip_pages_threshold;
:show
BEGIN;
SET LOCAL vacuum_skip.skip_pages_threshold = 4;
SET LOCAL skip_pages_threshold TO DEFAULT;
:show
SET skip_pages_threshold = 4;
RESET ALL;
:show
COMMIT;
:show
SET skip_pages_threshold = 4;
DISCARD ALL;
:show

-- A role's goes before the database's.  Any role may set its own.
\c - regress_vs_user
:show
ALTER ROLE regress_vs_user SET vacuum_skip.skip_pages_threshold = 6;
\c -
:show
SET skip_pages_threshold = 4;
RESET skip_pages_threshold;
:show
SELECT source, reset_val FROM pg_settings WHERE name = 'vacuum_skip.skip_pages_threshold';

-- A role's in this database goes before both.
\c - :admin
ALTER ROLE regress_vs_user IN DATABASE :"database" SET vacuum_skip.skip_pages_threshold = 7;
\c - regress_vs_user
:show

-- A connection's goes before them all.
\c -reuse-previous=on "options='-c vacuum_skip.skip_pages_threshold=8'"
:show
SET skip_pages_threshold = 4;
RESET skip_pages_threshold;
:show
SET skip_pages_threshold = 4;
RESET vacuum_skip.skip_pages_threshold;
:show
SELECT source, reset_val FROM pg_settings WHERE name = 'vacuum_skip.skip_pages_threshold';

-- What cannot be used is refused for roles and databases too.
\c -reuse-previous=on "options=''"
\c - :admin
ALTER ROLE regress_vs_user SET vacuum_skip.skip_pages_threshold = -1;
\echo :LAST_ERROR_SQLSTATE
ALTER DATABASE :"database" SET vacuum_skip.skip_pages_threshold = 'x';
\echo :LAST_ERROR_SQLSTATE
ALTER ROLE regress_vs_user SET vacuum_skip.skip_page_threshold = 1;
\echo :LAST_ERROR_SQLSTATE

ALTER ROLE regress_vs_user RESET ALL;
ALTER ROLE regress_vs_user IN DATABASE :"database" RESET ALL;
ALTER DATABASE :"database" RESET vacuum_skip.skip_pages_threshold;

-- The server's.  Only the long name may be in its files: it would not start
-- with the short one where the library is loaded by sessions.
ALTER SYSTEM SET skip_pages_threshold = 9;
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM RESET skip_pages_threshold;
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET vacuum_skip.skip_pages_threshold = -1;
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET vacuum_skip.skip_pages_threshold = 9;
SELECT pg_reload_conf();
\c -
:show
SET skip_pages_threshold = 4;
:show
RESET skip_pages_threshold;
:show
SELECT source, reset_val FROM pg_settings WHERE name = 'vacuum_skip.skip_pages_threshold';
ALTER SYSTEM RESET vacuum_skip.skip_pages_threshold;
SELECT pg_reload_conf();
\c -
:show

DROP ROLE regress_vs_user;

#!/usr/bin/env bash
# make psql: a throwaway server with the extension created, and psql in it.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

setup
build_and_stage
make_temp_dir
step "Starting a throwaway server (a few seconds); it is removed when psql ends"
connection=$("$ROOT/scripts/server.sh" start "$TEMP_DIR/server" session_preload_libraries=vacuum_skip)
eval "export $(tr '\n' ' ' <<<"$connection")"
psql=$PG_BINDIR/psql
"$psql" -X -q -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION vacuum_skip'
trap : INT # Ctrl-C is psql's: it cancels a query
"$psql" "$@"

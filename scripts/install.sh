#!/usr/bin/env bash
# make install: the extension, into the PostgreSQL 18 that PG_CONFIG names.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

[[ -n ${PG_CONFIG:-} ]] || die "which PostgreSQL? make install PG_CONFIG=/path/to/pg_config"
setup
options=()
for folder in "$("$REAL_PG_CONFIG" --pkglibdir)" "$("$REAL_PG_CONFIG" --sharedir)/extension"; do
    [[ ! -w $folder ]] || continue
    command -v sudo >/dev/null || die "you may not write into $folder, and there is no sudo; please run this as root"
    options=(--sudo)
done
step "Building the extension (about 2 minutes)"
cd "$ROOT"
cargo pgrx install --release --pg-config "$REAL_PG_CONFIG" "${options[@]}"
step "Installed. To try it in a session:
    CREATE EXTENSION vacuum_skip;
    LOAD 'vacuum_skip';
    SELECT * FROM vacuum_skip_plan('a_table');"

#!/usr/bin/env bash
# make bench: times the functions and VACUUM against what PostgreSQL has. Arguments
# are the program's; its --help tells them: make bench ARGS="--part vacuum". To measure
# another storage than that of /tmp, set TMPDIR to a folder on it.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

setup
build_and_stage
export VACUUM_SKIP_SERVER_SH=$ROOT/scripts/server.sh VACUUM_SKIP_BINDIR=$PG_BINDIR
cd "$ROOT"
make_temp_dir
cargo run --release --quiet -p vacuum-skip-lab --bin bench -- --folder "$TEMP_DIR/server" "$@"

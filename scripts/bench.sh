#!/usr/bin/env bash
# make bench: the lab, which repeats the study on this machine. Arguments are the lab's.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

setup
build_and_stage
export VACUUM_SKIP_SERVER_SH=$ROOT/scripts/server.sh VACUUM_SKIP_BINDIR=$PG_BINDIR
cd "$ROOT"
cargo run --release -p vacuum-skip-lab -- "$@"

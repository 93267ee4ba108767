#!/usr/bin/env bash
# make lab: the study repeated on this machine, and the report on it. DIR is a folder on
# the storage to measure, ARGS are options of `vacuum-skip-lab run`:
#   make lab DIR=/mnt/nvme/lab ARGS="--size 34GB"

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

# Not /tmp: that may be memory.
DIR=${LAB_DIR:-/var/tmp/vacuum-skip-lab}

setup
build_and_stage
step "Building the lab (under a minute)"
cd "$ROOT"
cargo build --release --quiet -p vacuum-skip-lab --bin vacuum-skip-lab
lab=${CARGO_TARGET_DIR:-$ROOT/target}/release/vacuum-skip-lab
export VACUUM_SKIP_BINDIR=$PG_BINDIR VACUUM_SKIP_SERVER_PRIVILEGES
VACUUM_SKIP_SERVER_PRIVILEGES=$(IFS=: && echo "${SERVER_PRIVILEGES[*]}")
step "Measuring in $DIR (at most 14 minutes, unless told otherwise)"
"$lab" run "$DIR" --self-check --time-limit 14 "$@"
step "The report"
"$lab" report "$DIR"

#!/usr/bin/env bash
# Runs a command with the project's tools set up, for work on the code:
#   scripts/run.sh cargo pgrx schema pg18
#   scripts/run.sh cargo check --features pg_test

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

(($#)) || die "usage: scripts/run.sh COMMAND..."
setup
exec "$@"

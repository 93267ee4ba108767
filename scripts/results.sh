# shellcheck shell=bash
# Sourced after common.sh by the scripts that run tests: counts what passed and
# failed, by what cargo and pg_regress print, and remembers which parts failed.

PASSED=0
FAILED=0
FAILED_PARTS=()

# count_results FILE: add up cargo's and pg_regress's own counts; a failed test, or
# none at all, is a failure.
count_results() {
    local passed failed
    passed=$(awk '/^test result:/ { n += $4 } /^ok [0-9]+ / { n++ } END { print n + 0 }' "$1")
    failed=$(awk '/^test result:/ { n += $6 } /^not ok [0-9]+ / { n++ } END { print n + 0 }' "$1")
    PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed))
    ((passed + failed > 0)) || say "no test ran"
    ((passed > 0 && failed == 0))
}

# part NAME COMMAND...: a part that fails does not keep the others from running.
part() {
    local name=$1 output=$TEMP_DIR/output status=0
    shift
    "$@" | tee "$output" || status=$?
    count_results "$output" || status=$?
    ((status == 0)) || FAILED_PARTS+=("$name")
}

report_results() {
    step "$PASSED passed, $FAILED failed"
    ((${#FAILED_PARTS[@]} == 0)) || die "failed: ${FAILED_PARTS[*]}"
}

#!/usr/bin/env bash
# make test-core: PostgreSQL's own tests, on an assert-enabled server that runs every
# VACUUM through the extension, and a streaming standby that checks each page image
# in the WAL (wal_consistency_checking) against the page its own replay made.
#   scripts/test-core.sh                  all: regression, isolation, contrib, injection points, TAP
#   scripts/test-core.sh TEST...          regression tests, isolation specs and TAP tests by name; test_setup
#                                         comes first, others that a test needs are named before it
#   scripts/test-core.sh stock [TEST...]  the same on the server alone, for comparison
# The source is that of Debian's package, or the tree that PG_SOURCE names. Status 69:
# it could not be had, and nothing ran. Results of a failed run stay in .tools/core-results.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"
# shellcheck source=scripts/core.sh
. "$ROOT/scripts/core.sh"
# shellcheck source=scripts/results.sh
. "$ROOT/scripts/results.sh"

# The extension in use; `stock` leaves these settings out.
EXTENSION_SETTINGS=(shared_preload_libraries=vacuum_skip vacuum_skip.vacuum_engine=always)
# As pg_regress sets up servers of its own, and pages checked in the standby. Two
# prepared transactions are what a test expects to be the limit.
SERVER_SETTINGS=(wal_consistency_checking=all fsync=off max_prepared_transactions=2 log_line_prefix="%m [%p] %q%a ")

# TAP tests of what VACUUM does to a standby, and of cutoffs that move while it runs.
# By name also those of modules/xid_wraparound: they take minutes and 20 GB.
TAP_TESTS=(031_recovery_conflict 048_vacuum_horizon_floor 100_vacuumdb 101_vacuumdb_all)

STOCK=false
RESULTS=$TOOLS/core-results
# What to run.
REGRESS='' ISOLATION='' MODULES=() TAP_FILES=()

# --- servers --------------------------------------------------------------------

on() { "$PG_BINDIR/psql" -X --quiet --no-align --tuples-only --set ON_ERROR_STOP=1 --host="$TEMP_DIR/$1" "${@:2}"; }

start_servers() {
    local connection settings=("${SERVER_SETTINGS[@]}")
    $STOCK || settings+=("${EXTENSION_SETTINGS[@]}")
    connection=$("$ROOT/scripts/server.sh" start "$TEMP_DIR/primary" "${settings[@]}")
    eval "export $(tr '\n' ' ' <<<"$connection")"
    # Nothing must turn this into a test of the server alone.
    $STOCK || [[ $(on primary --command="VACUUM (VERBOSE) pg_class" 2>&1) == *"skip pages threshold:"* ]] ||
        die "VACUUM does not run through the extension"
    # Here, and not by pg_regress later: a standby that replays CREATE DATABASE has
    # none of the template's visibility map. (The server logs the map's pages as if
    # what lies between pd_lower and pd_upper were free.)
    on primary --command="CREATE DATABASE regression TEMPLATE template0" --command="CREATE DATABASE isolation_regression TEMPLATE template0"
    # The slot keeps the WAL that the standby has not replayed.
    on primary --command="SELECT pg_create_physical_replication_slot('standby', true)" >/dev/null
    "$ROOT/scripts/server.sh" standby "$TEMP_DIR/standby" "$TEMP_DIR/primary" primary_slot_name=standby >/dev/null
}

stop_servers() {
    "$ROOT/scripts/server.sh" stop "$TEMP_DIR/standby"
    "$ROOT/scripts/server.sh" stop "$TEMP_DIR/primary"
}

# --- suites ---------------------------------------------------------------------

# suite NAME PROGRAM INPUT OPTION...: run pg_regress or what is built on it, with
# INPUT as the folder of tests.
suite() {
    local name=$1 program=$2 input=$3 output=$TEMP_DIR/$1.out
    shift 3
    mkdir -p "$output"
    ((EUID != 0)) || chown "$SERVER_USER" "$output" # tests let the server write there
    (cd "$output" && as_server_user "$program" --inputdir="$input" --outputdir="$output" --bindir="$PG_BINDIR" \
        --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" --use-existing --max-concurrent-tests=20 "$@")
}

# A copy of the tests, since the extension is meant to change some output. What, and
# why, is in the patch; all other output must be the server's own, and this output
# exactly what the patch says.
regress() {
    local source=$CORE/source/src/test/regress input=$TEMP_DIR/regress
    mkdir "$input"
    cp -r "$source"/{sql,expected,data,resultmap} "$input"
    $STOCK || patch --quiet --strip=1 --fuzz=0 --directory="$input" <"$ROOT/pg_test/core/expected.patch" >&2 || return
    suite regression "$source/pg_regress" "$input" --dlpath="$source" --schedule="$1"
}

isolation() {
    local source=$CORE/source/src/test/isolation
    suite isolation "$source/pg_isolation_regress" "$source" --schedule="$1"
}

# Tests of a module, as its Makefile runs them; some say that they are for a server
# of their own, which ours is.
module() {
    make -s -C "$CORE/source/$1" installcheck NO_INSTALLCHECK= EXTRA_REGRESS_OPTS="--outputdir=$TEMP_DIR/${1##*/}.out"
}

# tap FILE...: these start servers of their own.
tap() {
    local output=$TEMP_DIR/tap.out setting settings=()
    mkdir "$output"
    ((EUID != 0)) || chown "$SERVER_USER" "$output"
    $STOCK || settings=("dynamic_library_path=$STAGE/lib:\$libdir" "${EXTENSION_SETTINGS[@]}")
    for setting in "${settings[@]}"; do
        printf "%s = '%s'\n" "${setting%%=*}" "${setting#*=}"
    done >"$TEMP_DIR/tap.conf"
    chmod a+r "$TEMP_DIR/tap.conf"
    (
        export PATH=$PG_BINDIR:$PATH TEMP_CONFIG=$TEMP_DIR/tap.conf TESTDATADIR=$output TESTLOGDIR=$output/log
        export PG_REGRESS=$CORE/source/src/test/regress/pg_regress PG_TEST_EXTRA=xid_wraparound
        export PGCTLTIMEOUT=600 enable_injection_points=yes
        cd "$output" && as_server_user prove --verbose -I "$CORE/source/src/test/perl" "$@" | grep --line-buffered -v '^ *#'
    )
}

# --- after the suites -----------------------------------------------------------

# check NAME COMMAND...: a test of our own, which says what is wrong.
check() {
    local name=$1
    shift
    if "$@"; then echo "ok 1 - $name"; else echo "not ok 1 - $name"; fi
}

# The standby stops at the first page that differs from its image in the WAL.
standby_replays_everything() {
    local end replayed deadline=$((SECONDS + 300))
    end=$(on primary --command="SELECT pg_current_wal_flush_lsn()") || return
    until [[ ${replayed:-} == t ]]; do
        ((SECONDS < deadline)) || { say "the standby has not replayed $end" && return 1; }
        sleep 0.2
        replayed=$(on standby --command="SELECT pg_last_wal_replay_lsn() >= '$end'") || return
    done
}

# Heap, TOAST and indexes of what the suites left behind.
amcheck_finds_nothing() {
    "$PG_BINDIR/pg_amcheck" --host="$TEMP_DIR/$1" --all --heapallindexed --jobs=2 "${@:2}"
}

# The visibility map of it claims nothing that is not so.
visibility_map_is_true() {
    local wrong
    wrong=$(on primary --dbname=regression <<'END'
SELECT c.oid::regclass, wrong.*
FROM pg_class c JOIN pg_am a ON c.relam = a.oid AND a.amname = 'heap',
     LATERAL (SELECT 'not all-visible', t FROM pg_check_visible(c.oid) t
              UNION ALL SELECT 'not all-frozen', t FROM pg_check_frozen(c.oid) t) wrong
END
    ) || return
    [[ -z $wrong ]] || { say "$wrong" && return 1; }
}

# What changes the map is in the WAL. (Pages that were added and never used are not:
# the standby may have fewer of those.)
visibility_maps_are_equal() {
    local server
    for server in primary standby; do
        on "$server" --dbname=regression >"$TEMP_DIR/map.$server" <<'END' || return
SELECT c.oid::regclass, map.*
FROM pg_class c JOIN pg_am a ON c.relam = a.oid AND a.amname = 'heap', LATERAL pg_visibility_map(c.oid) map
WHERE c.relpersistence = 'p' AND (map.all_visible OR map.all_frozen) ORDER BY c.oid, map.blkno
END
    done
    [[ -s $TEMP_DIR/map.primary ]] && diff "$TEMP_DIR"/map.{primary,standby} >&2
}

logs_are_clean() {
    ! grep -nE 'TRAP:|PANIC:|inconsistent page found|was terminated by signal' "$TEMP_DIR"/{primary,standby}/log >&2
}

check_servers() {
    # Nothing changes from here on, but for the extensions that the checks need.
    "$ROOT/scripts/server.sh" restart "$TEMP_DIR/primary" autovacuum=off >/dev/null || return
    on primary --dbname=regression --command="CREATE EXTENSION pg_visibility" || return
    check "amcheck finds nothing on the primary" amcheck_finds_nothing primary --install-missing
    check "the standby replays everything" standby_replays_everything
    check "amcheck finds nothing on the standby" amcheck_finds_nothing standby
    check "the visibility map is true" visibility_map_is_true
    check "the standby has the same visibility map" visibility_maps_are_equal
    check "no crash, failed assertion or inconsistent page in the logs" logs_are_clean
}

# --- what to run ----------------------------------------------------------------

# Adds the files of the TAP tests that are named to TAP_FILES.
find_tap_tests() {
    local name file
    for name in "$@"; do
        file=$(find "$CORE/source" -path "*/t/$name.pl" -print -quit)
        [[ -n $file ]] || die "PostgreSQL has no test of that name: $name"
        TAP_FILES+=("$file")
    done
}

# Sorts the tests that are named into REGRESS and ISOLATION, which are schedules, and
# TAP_FILES.
choose_named_tests() {
    local name
    REGRESS=$TEMP_DIR/regress_schedule ISOLATION=$TEMP_DIR/isolation_schedule
    for name in "$@"; do
        if [[ -e $CORE/source/src/test/regress/sql/$name.sql ]]; then
            [[ -e $REGRESS ]] || echo "test: test_setup" >"$REGRESS"
            echo "test: $name" >>"$REGRESS"
        elif [[ -e $CORE/source/src/test/isolation/specs/$name.spec ]]; then
            echo "test: $name" >>"$ISOLATION"
        else
            find_tap_tests "$name"
        fi
    done
    chmod -f a+r "$REGRESS" "$ISOLATION" || true # for the servers' user, whatever the umask
}

choose_all_tests() {
    REGRESS=$CORE/source/src/test/regress/parallel_schedule
    ISOLATION=$CORE/source/src/test/isolation/isolation_schedule
    MODULES=("${CONTRIB[@]/#/contrib/}" src/test/modules/injection_points)
    find_tap_tests "${TAP_TESTS[@]}"
}

run_tests() {
    local module
    if [[ -e $REGRESS ]]; then
        step "PostgreSQL's regression tests"
        part regress regress "$REGRESS"
    fi
    if [[ -e $ISOLATION ]]; then
        step "PostgreSQL's isolation tests"
        part isolation isolation "$ISOLATION"
    fi
    for module in "${MODULES[@]}"; do
        step "PostgreSQL's tests in $module"
        part "$module" module "$module"
    done
    if ((${#TAP_FILES[@]})); then
        step "PostgreSQL's TAP tests"
        part tap tap "${TAP_FILES[@]}"
    fi
    step "What the tests left behind"
    part check_servers check_servers
}

keep_results() {
    rm -rf "$RESULTS"
    mkdir "$RESULTS"
    cp -r "$TEMP_DIR"/*.out "$RESULTS"
    local server
    for server in primary standby; do
        cp "$TEMP_DIR/$server/log" "$RESULTS/$server.log"
    done
    find "$RESULTS" -name '*.diffs' -exec tail -n 300 {} + >&2
    say "Logs, results and differences are in ${RESULTS#"$ROOT"/}"
}

main() {
    [[ ${1:-} != stock ]] || { STOCK=true && shift; }
    need_core_postgres
    need libipc-run-perl perl -MIPC::Run -e 1
    need perl command -v prove
    need patch command -v patch
    setup
    make_temp_dir
    if (($#)); then choose_named_tests "$@"; else choose_all_tests; fi
    $STOCK || build_and_stage
    start_servers
    run_tests
    ((${#FAILED_PARTS[@]} == 0)) || keep_results
    stop_servers
    report_results
}

# Both builds differ from those of the other scripts: each has its own place.
export VACUUM_SKIP_STAGE=$TOOLS/stage-core CARGO_TARGET_DIR=$ROOT/target/core
STAGE=$VACUUM_SKIP_STAGE
main "$@"

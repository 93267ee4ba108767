#!/usr/bin/env bash
# make test: every test there is. Parts can be named:
#   scripts/test.sh [unit] [regress] [live]
#     unit     Rust tests, in the test process and inside a server (cargo pgrx test)
#     regress  SQL scripts in pg_test/sql and the output they must give (pg_regress)
#     live     black-box tests on servers of their own (pg_test), and the lab's own tests

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"
# shellcheck source=scripts/results.sh
. "$ROOT/scripts/results.sh"

# Rust tests. Their server finds the extension where pgrx installs the test build
# of it: in a stage of its own, which leaves the release build in peace.
unit() {
    local stage=$TOOLS/stage-test data=$TEMP_DIR/pgdata options=()
    rm -rf "$stage"
    mkdir -p "$stage/lib" "$stage/share/extension" "$data"
    if ((EUID == 0)); then
        chown "$SERVER_USER" "$data"
        options=(--runas "$SERVER_USER")
    fi
    (
        ((EUID != 0)) || PATH=$ROOT/scripts/root-shims:$PATH
        export PATH USER=${USER:-$SERVER_USER} VACUUM_SKIP_STAGE=$stage
        VACUUM_SKIP_SERVER_PRIVILEGES=$(IFS=: && echo "${SERVER_PRIVILEGES[*]}")
        VACUUM_SKIP_TEST_CONF=$(printf "%s = '%s'\n" \
            extension_control_path "$stage/share:\$system" dynamic_library_path "$stage/lib:\$libdir")
        export VACUUM_SKIP_SERVER_PRIVILEGES VACUUM_SKIP_TEST_CONF
        # cargo-pgrx builds the library once more, for its server. There are no
        # examples, but their mention lets cargo choose the same features of all
        # crates as for the tests, so that nothing is compiled again.
        export PGRX_BUILD_FLAGS=--examples
        cd "$ROOT" && cargo pgrx test pg18 --pgdata "$data" "${options[@]}"
    )
}

# SQL scripts, in the order of pg_test/schedule, or else by name.
regress() {
    local file sql=("$ROOT"/pg_test/sql/*.sql) tests=() connection output=$TEMP_DIR/regress
    [[ -e ${sql[0]} ]] || { say "there is no pg_test/sql/*.sql" && return 1; }
    if [[ -e $ROOT/pg_test/schedule ]]; then
        tests=(--schedule="$ROOT/pg_test/schedule")
        for file in "${sql[@]}"; do
            grep -qw "$(basename "$file" .sql)" "$ROOT/pg_test/schedule" || { say "$file is not in pg_test/schedule" && return 1; }
        done
    else
        tests=("${sql[@]##*/}")
        tests=("${tests[@]%.sql}")
    fi
    mkdir -p "$output"
    connection=$("$ROOT/scripts/server.sh" start "$TEMP_DIR/server" session_preload_libraries=vacuum_skip) || return
    local PGHOST PGPORT PGUSER PGDATABASE status=0
    eval "$connection"
    export PGHOST PGPORT PGUSER PGDATABASE
    "$PG_BINDIR/createdb" contrib_regression || return
    (cd "$output" && "$(dirname "$("$REAL_PG_CONFIG" --pgxs)")/../test/regress/pg_regress" --use-existing \
        --inputdir="$ROOT/pg_test" --outputdir="$output" --bindir="$PG_BINDIR" --dbname=contrib_regression \
        --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" "${tests[@]}") || status=$?
    ((status == 0)) || cat "$output/regression.diffs" >&2 || true
    "$ROOT/scripts/server.sh" remove "$TEMP_DIR/server"
    return "$status"
}

# What looks at the lab's report.
has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

# Black-box tests; they start their servers through server.sh, or, as the lab, themselves.
live() {
    (
        export VACUUM_SKIP_SERVER_SH=$ROOT/scripts/server.sh VACUUM_SKIP_BINDIR=$PG_BINDIR
        VACUUM_SKIP_SERVER_PRIVILEGES=$(IFS=: && echo "${SERVER_PRIVILEGES[*]}")
        export VACUUM_SKIP_SERVER_PRIVILEGES
        cd "$ROOT" && cargo test -p vacuum_skip_pg_test -p vacuum-skip-lab --no-fail-fast
    )
}

main() {
    local parts=("$@")
    ((${#parts[@]})) || parts=(unit regress live)
    [[ " ${parts[*]} " != *" live "* ]] || need chromium has_browser
    setup
    make_temp_dir
    local name
    for name in "${parts[@]}"; do
        case $name in
        unit)
            step "Rust tests, in the test process and inside a server (the first time about 3 minutes)"
            part unit unit
            ;;
        regress)
            build_and_stage
            step "SQL regression tests (under a minute)"
            part regress regress
            ;;
        live)
            [[ " ${parts[*]} " == *" regress "* ]] || build_and_stage
            step "Black-box tests on live servers (a few minutes)"
            part live live
            ;;
        *) die "no such part: $name; there are: unit regress live" ;;
        esac
    done
    report_results
}

main "$@"

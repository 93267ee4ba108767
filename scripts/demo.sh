#!/usr/bin/env bash
# make demo: on a throwaway server with PostgreSQL's default settings, what VACUUM
# would read of two tables, and how long that takes at two thresholds.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

REPETITIONS=3

start_server() {
    make_temp_dir
    SERVER=$TEMP_DIR/server
    local free
    free=$(df --output=avail -k "$TEMP_DIR" | tail -1)
    ((free > 4000000)) || die "$TEMP_DIR has too little space: the demo needs 4 GB; TMPDIR=... chooses another place"
    local connection
    connection=$("$ROOT/scripts/server.sh" start "$SERVER" session_preload_libraries=vacuum_skip)
    eval "export $(tr '\n' ' ' <<<"$connection")"
    query <<<'CREATE EXTENSION vacuum_skip'
}

restart_server() { "$ROOT/scripts/server.sh" restart "$SERVER" >/dev/null; }

# psql shows each statement before what it gives.
show() { PGOPTIONS="-c extra_float_digits=-10" "$PG_BINDIR/psql" -X --echo-queries --quiet --set ON_ERROR_STOP=1 --pset footer=off; }
query() { "$PG_BINDIR/psql" -X --quiet --no-align --tuples-only --set ON_ERROR_STOP=1; }

# The table of the study that this extension is made for: about 100 rows a page
# at fillfactor 50. Autovacuum must not tidy up before we have looked.
create_study() {
    show <<'END'
CREATE TABLE study (id bigint, value int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO study SELECT i, 0 FROM generate_series(1, 6000000) i;
VACUUM ANALYZE study;
UPDATE study SET value = value + 1 WHERE random() < 0.0005;
SELECT relpages, round(reltuples / relpages) AS rows_a_page FROM pg_class WHERE relname = 'study';
END
}

create_pgbench() {
    "$PG_BINDIR/pgbench" --initialize --scale=50 --quiet 2>&1 | tail -1
    query <<<'ALTER TABLE pgbench_accounts SET (autovacuum_enabled = off)'
    "$PG_BINDIR/pgbench" --no-vacuum --client=4 --transactions=1000 2>/dev/null |
        grep -E '^(number of transactions actually|tps)'
}

show_plans() {
    local table
    for table in study pgbench_accounts; do
        show <<END
SELECT * FROM vacuum_skip_plan('$table');
SELECT vacuum_skip_map('$table', threshold => 32);
SELECT vacuum_skip_map('$table', threshold => 1);
END
    done
}

# The server's buffers are empty after a restart; this empties the kernel's page
# cache of the table's files, and of nothing else.
forget_table() {
    local file path
    path=$SERVER/data/$(query <<<"SELECT pg_relation_filepath('$1')")
    restart_server
    for file in "$path" "$path".* "$path"_*; do
        [[ ! -e $file ]] || dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none
    done
}

# measure TABLE THRESHOLD: one cold scan; adds "pages|milliseconds" to a file.
measure() {
    forget_table "$1"
    query >>"$TEMP_DIR/$1.$2" <<END
SET skip_pages_threshold = $2;
SELECT scanned_pages, round(elapsed_ms::numeric, 1) FROM vacuum_skip_scan('$1');
END
}

measure_all() {
    local table repetition threshold
    for table in study pgbench_accounts; do
        for ((repetition = 1; repetition <= REPETITIONS; repetition++)); do
            for threshold in 32 1; do
                measure "$table" "$threshold"
                say "  $table, threshold $threshold: $(tail -1 "$TEMP_DIR/$table.$threshold" | sed 's/|/ pages, /') ms"
            done
        done
    done
}

median() { sort -t '|' -k2 -n "$1" | sed -n "$(((REPETITIONS + 1) / 2))p"; }

summary() {
    local table threshold values=()
    for table in study pgbench_accounts; do
        for threshold in 32 1; do
            values+=("('$table', $threshold, $(median "$TEMP_DIR/$table.$threshold" | tr '|' ','))")
        done
    done
    "$PG_BINDIR/psql" -X --quiet --pset footer=off <<END
SELECT "table", threshold, scanned_pages, round(elapsed_ms) AS elapsed_ms,
       round(elapsed_ms / first_value(elapsed_ms) OVER (PARTITION BY "table" ORDER BY threshold DESC), 2) AS ratio
FROM (VALUES $(IFS=, && echo "${values[*]}")) AS median("table", threshold, scanned_pages, elapsed_ms)
ORDER BY "table" DESC, threshold DESC;
END
}

setup
build_and_stage
step "Starting a throwaway server with default settings; it is removed at the end"
start_server
step "The study's table: 500 MB, 0.05 % of its rows updated at random (about 10 seconds)"
create_study
step "pgbench: 650 MB, then 4,000 of its transactions (about 20 seconds)"
create_pgbench
step "What VACUUM would read at each threshold, from the visibility map alone"
show_plans
step "The scans themselves, $REPETITIONS times each (about 20 seconds). Before each, the server
    restarts and the kernel forgets the table's files, so that the pages come from storage:
    SET skip_pages_threshold = ...; SELECT scanned_pages, elapsed_ms FROM vacuum_skip_scan(...);"
[[ $(stat -f -c %T "$TEMP_DIR") != tmpfs ]] || say "    $TEMP_DIR is in memory, not on storage: TMPDIR=... chooses another place"
measure_all
step "Medians. The ratio compares the time with that of 32, the server's own threshold"
summary
step "To try it yourself: make psql. To run the tests: make test. README.md goes on from here"

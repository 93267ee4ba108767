#!/usr/bin/env bash
# Throwaway PostgreSQL servers that find the extension in the stage. Each lives in
# a folder of its own, listens on a Unix socket in it and nowhere else, and trusts
# whoever may enter the folder. As root, it runs as an unprivileged user.
usage() {
    cat <<'END'
usage: scripts/server.sh start   DIR [NAME=VALUE...]          create a server in DIR and start it
       scripts/server.sh standby DIR PRIMARY [NAME=VALUE...]  a streaming hot standby of the server in PRIMARY
       scripts/server.sh copy    DIR ORIGINAL [NAME=VALUE...] a copy of the stopped server in ORIGINAL, file by file
       scripts/server.sh restart DIR [NAME=VALUE...]          stop, add settings, start
       scripts/server.sh stop    DIR [smart|fast|immediate]   stop; does nothing to a server that is down
       scripts/server.sh remove  DIR                          stop and delete DIR
       scripts/server.sh env     DIR                          print how to connect, for eval
start, standby, copy and restart print what env prints. The server's log is DIR/log.
END
}

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

# settings NAME=VALUE...: lines for postgresql.conf, where the last one counts.
settings() {
    local setting value
    for setting in "$@"; do
        [[ $setting == *=* ]] || die "not NAME=VALUE: $setting"
        value=${setting#*=}
        printf "%s = '%s'\n" "${setting%%=*}" "${value//\'/\'\'}"
    done
}

own_settings() {
    settings "listen_addresses=" "unix_socket_directories=$DIR" \
        "extension_control_path=$STAGE/share:\$system" "dynamic_library_path=$STAGE/lib:\$libdir"
}

create_folder() {
    ((${#DIR} <= 92)) || die "$DIR: too long for a Unix socket's path"
    [[ -z $(ls -A "$DIR") ]] || die "$DIR is not empty"
    chmod 700 "$DIR"
    ((EUID != 0)) || chown "$SERVER_USER" "$DIR"
    cd "$DIR" # initdb wants to be where its user may be
}

pg_ctl() { as_server_user "$PG_BINDIR/pg_ctl" -D "$DIR/data" --silent --timeout=120 "$@"; }

start_server() {
    pg_ctl --log="$DIR/log" --wait start >&2 || {
        tail -20 "$DIR/log" >&2
        die "the server in $DIR did not start"
    }
    print_environment
}

stop_server() {
    pg_ctl status >/dev/null 2>&1 || return 0
    pg_ctl --mode="$1" --wait stop >&2
}

print_environment() {
    printf '%s=%q\n' PGHOST "$DIR" PGPORT 5432 PGUSER postgres PGDATABASE postgres
}

main() {
    (($# >= 2)) || { usage >&2 && exit 2; }
    local command=$1
    DIR=$(realpath -m "$2")
    shift 2
    case $command in start | standby | copy) mkdir -p "$DIR" ;; esac
    need_postgres
    choose_server_user "$PG_BINDIR/postgres" "$STAGE" "$(dirname "$DIR")"
    case $command in
    start)
        create_folder
        as_server_user "$PG_BINDIR/initdb" -D "$DIR/data" --username=postgres --auth=trust \
            --encoding=UTF8 --locale=C --no-sync --no-instructions >"$DIR/initdb.log" 2>&1 ||
            { cat "$DIR/initdb.log" >&2 && die "initdb failed in $DIR"; }
        { own_settings && settings "$@"; } >>"$DIR/data/postgresql.conf"
        start_server
        ;;
    standby)
        local primary
        primary=$(realpath "${1:?the PRIMARY folder}")
        shift
        create_folder
        as_server_user "$PG_BINDIR/pg_basebackup" --pgdata="$DIR/data" --host="$primary" --username=postgres \
            --write-recovery-conf --checkpoint=fast --no-sync >&2
        { own_settings && settings "$@"; } >>"$DIR/data/postgresql.conf"
        start_server
        ;;
    copy)
        local original
        original=$(realpath "${1:?the ORIGINAL folder}")
        shift
        [[ -d $original/data && ! -e $original/data/postmaster.pid ]] || die "there is no stopped server in $original"
        create_folder
        cp -a "$original/data" "$DIR/data"
        { own_settings && settings "$@"; } >>"$DIR/data/postgresql.conf"
        start_server
        ;;
    restart)
        [[ -d $DIR/data ]] || die "there is no server in $DIR"
        settings "$@" >>"$DIR/data/postgresql.conf"
        stop_server fast
        start_server
        ;;
    stop) stop_server "${1:-fast}" ;;
    remove)
        [[ -e $DIR ]] || return 0
        [[ -e $DIR/initdb.log || -e $DIR/data || -z $(ls -A "$DIR") ]] || die "$DIR does not hold a server"
        stop_server immediate
        rm -rf "$DIR"
        ;;
    env) print_environment ;;
    *) usage >&2 && exit 2 ;;
    esac
}

main "$@"

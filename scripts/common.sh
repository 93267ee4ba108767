# shellcheck shell=bash
# Sourced by every script in this folder: where things are, how to say what
# happens, temporary folders, and the user that throwaway servers run as.
# What has to be installed first is in setup.sh.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS=$ROOT/.tools
# The stage: where the extension is installed for throwaway servers to find.
STAGE=${VACUUM_SKIP_STAGE:-$TOOLS/stage}
export VACUUM_SKIP_STAGE=$STAGE

# A user's connection settings must not lead a script to another server, make's
# job server is not for cargo, and with RUST_BACKTRACE a server would show a
# backtrace with each error.
for variable in ${!PG@}; do
    case $variable in PG_CONFIG | PG_SOURCE | PGRX_PG_CONFIG_PATH) ;; *) unset "$variable" ;; esac
done
unset variable MAKEFLAGS MFLAGS MAKELEVEL CARGO_PGRX RUST_BACKTRACE

step() { printf '\n==> %s\n' "$*" >&2; }
say() { printf '%s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# --- temporary folders -----------------------------------------------------

TEMP_DIRS=()

# Sets TEMP_DIR to a new folder, which disappears when the script ends: also
# when it is interrupted, and with the server in it. A Unix socket's path has
# at most 107 bytes, so a long TMPDIR is passed over.
make_temp_dir() {
    local parent=${TMPDIR:-/tmp}
    ((${#parent} <= 50)) || parent=/tmp
    TEMP_DIR=$(mktemp -d --tmpdir="$parent" --suffix=.vacuum_skip)
    TEMP_DIRS+=("$TEMP_DIR")
    ((EUID != 0)) || chmod 711 "$TEMP_DIR" # the servers' user passes through it
    trap remove_temp_dirs EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

remove_temp_dirs() {
    local status=$? dir server
    trap - EXIT
    trap '' HUP INT TERM
    for dir in "${TEMP_DIRS[@]}"; do
        for server in "$dir" "$dir"/*; do
            [[ ! -d $server/data ]] || "$ROOT/scripts/server.sh" stop "$server" immediate || true
        done
        rm -rf "$dir"
    done
    exit "$status"
}

# --- the user that servers run as ------------------------------------------

# initdb and postgres refuse to run as root. Then they run as an unprivileged
# user, through setpriv: it needs no configuration, as sudo does, and no login
# shell, as su does.
SERVER_USER=$(id -un)
SERVER_PRIVILEGES=()

# choose_server_user FILE...: decide how servers are run; they read the FILEs, and
# what is in them if they are folders.
choose_server_user() {
    ((EUID == 0)) || return 0
    SERVER_USER=postgres
    id "$SERVER_USER" >/dev/null 2>&1 || SERVER_USER=nobody
    local plain=(--reuid "$SERVER_USER" --regid "$(id -g "$SERVER_USER")" --clear-groups) capability
    SERVER_PRIVILEGES=("${plain[@]}")
    server_user_reads "$@" && return
    # A checkout below a private folder, such as /root: the server may pass
    # through folders and read files of others, and nothing more. Its programs
    # ask access(2) too, which heeds capabilities only with no_setuid_fixup.
    for capability in dac_read_search dac_override; do
        SERVER_PRIVILEGES=("${plain[@]}" --securebits +no_setuid_fixup
            --inh-caps "+$capability" --ambient-caps "+$capability")
        server_user_reads "$@" && return
    done
    die "user $SERVER_USER, whom servers run as, cannot read $1, and this root may not let it:
move the project to a folder that everybody can read, or run this as an ordinary user"
}

server_user_reads() {
    local file
    for file in "$@"; do
        if [[ -d $file ]]; then
            as_server_user test -d "$file/." 2>/dev/null || return
        else
            as_server_user test -r "$file" 2>/dev/null || return
        fi
    done
}

as_server_user() {
    if ((EUID == 0)); then
        setpriv "${SERVER_PRIVILEGES[@]}" "$@"
    else
        "$@"
    fi
}

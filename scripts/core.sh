# shellcheck shell=bash
# Sourced after setup.sh: PostgreSQL 18 built from its source with assertions, and
# with what its own tests need. A server package has neither the assertions nor the
# tests, and it may not be the server that the source belongs to.

CORE=
CORE_PACKAGE=postgresql-18
CORE_SUITE=forky # the Debian release that has it
CONTRIB=(amcheck bloom pageinspect pg_freespacemap pg_visibility pg_walinspect pgstattuple)

# Status of a script that could not have the source.
SOURCE_UNAVAILABLE=69

source_unavailable() {
    say "
################################################################################
##
##  POSTGRESQL'S OWN TESTS WERE NOT RUN: its source could not be had.
##  $1
##  With a source tree of PostgreSQL 18 on this machine: PG_SOURCE=/path/to/it
##
################################################################################"
    exit "$SOURCE_UNAVAILABLE"
}

# The version of a source tree; empty if that is no source of PostgreSQL.
source_version() { sed -n "s/^PACKAGE_VERSION='\(.*\)'$/\1/p" "$1/configure" 2>/dev/null; }

# --- Debian's source package ---------------------------------------------------

# The mirrors from which this machine installs its own Debian packages.
debian_mirrors() {
    local codename
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
    [[ -n $codename ]] || return 0
    apt-get update --print-uris 2>/dev/null | sed -n "s|^'\(.*\)/dists/$codename/InRelease'.*|\1|p" | sort -u
}

# The source package is in a later release than the machine's own may be, so apt
# gets a configuration of its own, and the system's is left as it is. apt takes
# nothing that Debian has not signed.
write_apt_configuration() {
    local apt=$1 mirror=$2
    mkdir -p "$apt"/{lists,cache,download}
    : >"$apt/status"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $CORE_SUITE main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
#clear APT::Update;
APT::Sandbox::User "root";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt/cache";
END
}

# Leaves the package's archive in $1/download. Its name has the version.
download_source() {
    local apt=$1 mirror
    for mirror in $(debian_mirrors); do
        write_apt_configuration "$apt" "$mirror"
        apt-get -c "$apt/apt.conf" -q update >&2 || continue
        # shellcheck disable=SC2164 # a failed cd fails the list
        (cd "$apt/download" && apt-get -c "$apt/apt.conf" -q source --download-only --tar-only "$CORE_PACKAGE") >&2 && return
    done
    return 1
}

unpack_debian_source() {
    local folder=$1 apt=$CORE/apt
    step "Downloading PostgreSQL 18's source from Debian $CORE_SUITE (once, 35 MB)"
    command -v apt-get >/dev/null || source_unavailable "There is no apt-get here to download Debian's source package with."
    rm -rf "$apt"
    download_source "$apt" ||
        source_unavailable "apt could not download Debian's source package $CORE_PACKAGE; its messages are above."
    tar -xf "$apt/download/${CORE_PACKAGE}"_*.orig.tar.* -C "$folder" --strip-components=1
    rm -rf "$apt"
}

# --- source and build ----------------------------------------------------------

# The build happens in a copy: a tree of the user's stays as it is, and may have
# been configured for something else.
copy_source() {
    local unfinished=$CORE/source.unfinished
    [[ ! -d $CORE/source ]] || return 0
    rm -rf "$unfinished"
    mkdir "$unfinished"
    if [[ -n ${PG_SOURCE:-} ]]; then
        cp -r "$PG_SOURCE/." "$unfinished"
        [[ ! -f $unfinished/config.status ]] || make -s -C "$unfinished" distclean >/dev/null
    else
        unpack_debian_source "$unfinished"
    fi
    [[ $(source_version "$unfinished") == 18* ]] ||
        source_unavailable "${PG_SOURCE:-The package} is not the source of PostgreSQL 18."
    mv -T "$unfinished" "$CORE/source"
}

# What it leaves out (ICU, readline, zlib) is what the tests can do without.
build_from_source() {
    local make=(make -s -j"$(nproc)") folder
    cd "$CORE/source" &&
        ./configure --quiet --prefix="$CORE/install" --enable-cassert --enable-debug --enable-injection-points \
            --without-icu --without-readline --without-zlib CFLAGS="-O1 -g" &&
        "${make[@]}" install &&
        "${make[@]}" -C src/test/regress &&
        "${make[@]}" -C src/test/isolation || return
    for folder in "${CONTRIB[@]/#/contrib/}" src/test/modules/{injection_points,xid_wraparound}; do
        "${make[@]}" -C "$folder" install || return
    done
    touch "$CORE/built"
}

build_once() {
    [[ ! -e $CORE/built ]] || return 0
    step "Building PostgreSQL $(source_version "$CORE/source") with assertions into ${CORE#"$ROOT"/} (once, about 5 minutes)"
    (build_from_source) >"$CORE/build.log" 2>&1 9>&- || {
        tail -40 "$CORE/build.log" >&2
        die "PostgreSQL could not be built; the whole log is $CORE/build.log"
    }
}

# Sets CORE, the folder of the build (in it: source, install), and PG_CONFIG.
need_core_postgres() {
    CORE=$TOOLS/core-debian
    if [[ -n ${PG_SOURCE:-} ]]; then
        PG_SOURCE=$(realpath "$PG_SOURCE")
        [[ -n $(source_version "$PG_SOURCE") ]] || die "PG_SOURCE=$PG_SOURCE is not a source tree of PostgreSQL"
        CORE=$TOOLS/core-$(cksum <<<"$PG_SOURCE" | cut -d' ' -f1)
    fi
    export PG_CONFIG=$CORE/install/bin/pg_config
    [[ ! -e $CORE/built ]] || return 0
    need gcc command -v cc
    need libc6-dev c_compiler_works
    need make command -v make
    need bison command -v bison
    need flex command -v flex
    need perl perl -MFindBin -MGetopt::Long -e 1
    need bzip2 command -v bzip2
    install_missing_packages
    mkdir -p "$CORE"
    # Two runs at once: the second one waits, and finds it built.
    {
        flock 9
        copy_source
        build_once
    } 9>"$CORE/.lock"
}

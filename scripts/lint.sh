#!/usr/bin/env bash
# make lint: format, clippy, documentation, shell scripts, and where `unsafe` is.

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/setup.sh
. "$ROOT/scripts/setup.sh"

# The code that may break Rust's rules is in one folder, for reviewers to find.
no_unsafe_outside_server() {
    local found
    found=$(find src -name '*.rs' -not -path 'src/server/*' -not -path src/server.rs -exec awk '
        { code = $0; sub(/\/\/.*/, "", code) }
        code ~ /(^|[^[:alnum:]_])unsafe([^[:alnum:]_]|$)/ { print FILENAME ":" FNR ": " $0 }' {} +)
    [[ -z $found ]] || die "unsafe code belongs in src/server:
$found"
}

setup
cd "$ROOT"
for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 ||
        die "cargo $component is missing; please run: rustup component add rustfmt clippy"
done
# On a server that checks a commit, nothing is skipped for want of a tool.
if [[ ${CI:-} == true ]]; then
    need shellcheck command -v shellcheck
    install_missing_packages
fi

step "Format"
cargo fmt --all --check
step "Unsafe code"
no_unsafe_outside_server
step "Shell scripts"
if command -v shellcheck >/dev/null; then
    shellcheck --external-sources scripts/*.sh scripts/pg_config_staged scripts/root-shims/sudo .ci/run
else
    say "skipped: shellcheck is not installed"
fi
step "Clippy (the first time about 2 minutes)"
cargo clippy --workspace --all-targets --features pg_test -- -D warnings
step "Documentation (half a minute)"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --features pg_test
step "No complaints"

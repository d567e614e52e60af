#!/bin/sh
# checks/oldest.sh: the crate as it is published builds with the oldest compiler that its manifest names, each feature
# alone, and with the oldest versions of everything that it asks for.
set -eu
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! rustup toolchain list | grep -q "^$oldest-" && ! rustup toolchain install "$oldest" --profile minimal; then
    echo "Rust $oldest cannot be had here: the versions are checked with the one that is"
    oldest=$(rustup show active-toolchain | sed 's/[- ].*//')
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The package, for it has no workspace whose other members ask for newer versions.
cargo package -q -p sprat --no-verify --allow-dirty --target-dir "$folder/target"
tar -xf "$folder"/target/package/sprat-*.crate -C "$folder"
cd "$folder"/sprat-*/
export CARGO_TARGET_DIR="$folder/target"
for features in "" json listenfd internals json,listenfd,internals; do
    cargo "+$oldest" check -q --lib --no-default-features --features "$features"
    echo "Rust $oldest builds it with the features [$features]"
done
if rustup toolchain list | grep -q '^nightly'; then
    rm -f Cargo.lock
    cargo +nightly generate-lockfile -q -Z direct-minimal-versions
    cargo "+$oldest" check -q --lib --all-features
    echo "and with the oldest versions that it asks for"
fi

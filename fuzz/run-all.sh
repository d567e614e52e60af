#!/bin/sh
# Runs every target on the seeds and for a fixed number of inputs from a fixed seed: fuzz/run-all.sh [RUNS]
#
# The same inputs each time, so that a run that fails fails again. What CI does; to really fuzz, see README.md.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-20000}
cargo +nightly fuzz build
for target in $(cargo +nightly fuzz list); do
    # Some inputs cost more than others.
    case $target in
        connection | smuggling) n=$((runs / 4)) ;;
        *) n=$runs ;;
    esac
    # Into an empty directory first: the corpus stays as it is.
    found=$(mktemp -d)
    # shellcheck disable=SC2046,SC2086
    cargo +nightly fuzz run "$target" "$found" "fuzz/corpus/$target" -- \
        -runs="$n" -seed=1 -max_len=1024 -timeout=10 -print_final_stats=1 $(sh fuzz/dict/of.sh "$target") \
        2>&1 | grep -E 'DONE|ERROR|panicked|Test unit|average_exec|SUMMARY' | sed "s/^/$target: /"
    rm -rf "$found"
done

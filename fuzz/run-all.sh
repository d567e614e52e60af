#!/bin/sh
# fuzz/run-all.sh [RUNS]: every target on its seeds, and on RUNS inputs (20000) that are the same each time.
#
# For CI, in a few minutes: a run that fails fails again. To really fuzz, see README.md.
set -eu
. "$(dirname "$0")/lib.sh"
runs=${1:-20000}
log=$(mktemp)
scratch=$(mktemp -d)
trap 'rm -rf "$log" "$scratch"' EXIT

cargo +nightly fuzz build
for target in $(targets); do
    # What is found goes to a folder of its own, so that the next run begins with the same seeds.
    mkdir "$scratch/$target"
    # shellcheck disable=SC2046
    if ! cargo +nightly fuzz run "$target" "$scratch/$target" "fuzz/corpus/$target" -- $(dictionary "$target") \
        -runs="$runs" -seed=1 -max_len=600 -timeout=20 -print_final_stats=1 >"$log" 2>&1; then
        tail -60 "$log"
        echo "$target: FAILED"
        exit 1
    fi
    coverage=$(sed -n 's/.*DONE *\(cov: [0-9]* ft: [0-9]*\).*/\1/p' "$log")
    speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    echo "$target: $runs runs, $coverage, $speed runs a second"
done

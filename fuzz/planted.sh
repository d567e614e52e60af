#!/bin/sh
# fuzz/planted.sh [TARGET..]: every target has to find the bug that src/ holds for it.
#
# The bugs are the `planted!` lines in src/. They exist only in the build that is made here. The targets begin with their
# dictionaries alone; only those that need whole conversations begin with their seeds too.
set -eu
. "$(dirname "$0")/lib.sh"
runs=400000
seconds=120
log=$(mktemp)
scratch=$(mktemp -d)
trap 'rm -rf "$log" "$scratch"' EXIT
export RUSTFLAGS="--cfg planted"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-fuzz/target}/planted"

cargo +nightly fuzz build
missed=0
summary=
for target in ${*:-$(targets)}; do
    mkdir "$scratch/$target"
    case $target in
        connection | smuggling) seeds=fuzz/corpus/$target ;;
        *) seeds= ;;
    esac
    begun=$(date +%s)
    # shellcheck disable=SC2046,SC2086
    if SPRAT_PLANTED=$target cargo +nightly fuzz run "$target" "$scratch/$target" $seeds -- $(dictionary "$target") \
        -artifact_prefix="$scratch/" -runs=$runs -max_total_time=$seconds -seed=1 -max_len=600 -print_final_stats=1 \
        >"$log" 2>&1; then
        echo "$target: MISSED its bug"
        summary="$summary$target missed
"
        missed=1
    elif ! grep -q panicked "$log"; then
        tail -30 "$log"
        echo "$target: failed otherwise"
        summary="$summary$target failed
"
        missed=1
    else
        took=$(($(date +%s) - begun))
        count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "$target: found its bug in $count runs, $took s"
        summary="$summary$target $count
"
    fi
done
printf '\nruns until found:\n%s' "$summary"
exit $missed

#!/bin/sh
# How many instructions a search takes: one line for each table size, method and path. Needs valgrind.
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --release -p sprat-checks --example route_cost
program=${CARGO_TARGET_DIR:-target}/release/examples/route_cost

total() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1 | sed -n 's/.*Collected : //p'
}

for rows in 10 1000; do
    for request in "GET /" "DELETE /" "GET /none" "GET /page-4" "GET /echo-path/123" "GET /api/v1/resource/123" \
        "GET /api/v1/none/123" "GET /users7/1/items/12345" "GET /static3/a/b/c"; do
        set -- $request
        few=$(total $rows "$2" "$1" 1000)
        many=$(total $rows "$2" "$1" 11000)
        echo "$rows rows: $1 $2: $(((many - few) / 10000))"
    done
done

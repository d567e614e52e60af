#!/usr/bin/env bash
# Runs a command beside a PostgreSQL of its own, which is gone afterwards: with-postgres.sh COMMAND [ARGUMENT...]
# The command finds its URL in TEST_POSTGRES_URL, and in POSTGRES_RESTART a command that restarts it.
set -euo pipefail

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || bin=$(dirname "$(readlink -f "$(command -v pg_ctl)")")

folder=$(mktemp -d)
# It does not run as root.
as=()
if [ "$(id -u)" = 0 ]; then
    chown postgres "$folder"
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
server() { (cd "$folder" && "${as[@]}" "$bin/pg_ctl" -D "$folder/data" "$@") >>"$folder.log" 2>&1; }
finish() {
    server -m immediate -w stop || true
    rm -rf "$folder" "$folder.log"
}
trap finish EXIT

(cd "$folder" && "${as[@]}" "$bin/initdb" -D "$folder/data" -U auth -A trust -E UTF8) >"$folder.log" 2>&1 ||
    { cat "$folder.log"; exit 1; }
# No port: its socket is in its folder, so nothing else on the machine can be in the way.
options="-k $folder -c listen_addresses= -c max_connections=400"
server -o "$options" -l "$folder/log" -w start || { cat "$folder.log" "$folder/log"; exit 1; }

export TEST_POSTGRES_URL="postgres://auth@${folder//\//%2F}/postgres"
export POSTGRES_RESTART="cd / && ${as[*]} $bin/pg_ctl -D $folder/data -o '$options' -l $folder/log -m fast -w restart"
"$@"

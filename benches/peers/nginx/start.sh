#!/bin/sh
# start.sh ADDR: nginx with the configuration beside this file, in a folder of its own.
set -e
addr=${1:-127.0.0.1:8080}
here=$(cd "$(dirname "$0")" && pwd)
run=${TMPDIR:-/tmp}/sprat-peer-nginx-${addr##*:}
mkdir -p "$run"
sed "s/@ADDR@/$addr/" "$here/nginx.conf" >"$run/nginx.conf"
PATH=$PATH:/usr/sbin:/usr/local/sbin
nginx -t -q -e stderr -p "$run" -c "$run/nginx.conf"
echo "listening on $addr"
exec nginx -e stderr -p "$run" -c "$run/nginx.conf"

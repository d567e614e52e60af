#!/usr/bin/env bash
# Two instances on one PostgreSQL behind HAProxy: sessions are shared, revocation is seen by both at once, one of them
# can be killed or replaced. Run it as: with-postgres.sh two-instances.sh [PATH OF THE PROGRAM]
set -euo pipefail

auth=$(readlink -f "${1:-$(dirname "$0")/../target/release/auth}")
[ -x "$auth" ] || { echo "there is no program $auth: build it first"; exit 1; }
cd "$(dirname "$0")"
folder=$(mktemp -d)
declare -A pids=()
finish() {
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
fail() {
    echo "FAILED: $*"
    tail -n 20 "$folder"/*.log
    exit 1
}

export DATABASE_URL=$TEST_POSTGRES_URL SERVICE_KEY='the key of services' BCRYPT_COST=4 DATABASE_CONNECTIONS=2
# 20 logins a minute for the client at each. Everybody here has one address, so those limits are out of the way.
export INSTANCES=2 LOGINS_PER_MINUTE=40 REGISTRATIONS_PER_MINUTE=200 DRAIN_SECONDS=2
export ADDRESS_FLOWS_PER_MINUTE=10000 ADDRESS_LOGINS_PER_MINUTE=10000
# The balancer, and what is asked past it.
export BALANCERS=127.0.0.1

# ports: four that are free now, each another, from below those that the system gives to clients.
ports() {
    local port count=0
    for port in $(shuf -i 20000-30000 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
        echo "$port"
        count=$((count + 1))
        [ $count -lt 4 ] || return 0
    done
}

# launch NAME ADDRESS
launch() {
    LISTEN=$2 "$auth" >"$folder/$1.log" 2>&1 &
    pids[$1]=$!
}

ready() { # NAME
    for _ in $(seq 100); do
        grep -q 'listening on' "$folder/$1.log" && return
        sleep 0.05
    done
    fail "$1 does not start"
}

# ask CURL-ARGUMENT... : "STATUS BODY"
ask() {
    local as=()
    # Past the balancer, as the balancer would.
    [[ $* != *http://$one* && $* != *http://$two* ]] || as=(--haproxy-protocol)
    curl -sS --max-time 10 -w '\n%{http_code}\n' "${as[@]}" "$@" 2>&1 | tac | tr '\n' ' '
}

# expect WHAT GOT PATTERN
expect() {
    # shellcheck disable=SC2053
    [[ $2 == $3 ]] || fail "$1: got '$2', not '$3'"
    echo "ok: $1"
}

value() { sed -E "s/.*\"$1\":\"([^\"]*)\".*/\1/" <<<"$2"; }

mapfile -t free < <(ports)
one=127.0.0.1:${free[0]} two=127.0.0.1:${free[1]}
export AUTH_1=$one AUTH_2=$two PUBLIC=127.0.0.1:${free[2]} INTERNAL=127.0.0.1:${free[3]}
public=http://$PUBLIC internal=http://$INTERNAL

"$auth" add-client demo http://localhost:8080/callback >/dev/null
# At the same moment: both make the tables and the keys, and both get the same.
launch one "$one"
launch two "$two"
ready one
ready two
haproxy -f haproxy.cfg >"$folder/haproxy.log" 2>&1 &
pids[haproxy]=$!
for _ in $(seq 100); do curl -s "$public/health" >/dev/null && break; sleep 0.05; done

client=(-H 'X-Client-Id: demo')
key=(-H "X-Service-Key: $SERVICE_KEY")
# Those of RFC 7636, appendix B.
verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM
begin() { # BASE: a new flow
    local query="response_type=code&client_id=demo&redirect_uri=http%3A%2F%2Flocalhost%3A8080%2Fcallback"
    value flow_id "$(ask "$1/oauth/authorize?$query&code_challenge=$challenge&code_challenge_method=S256")"
}
login() { # BASE FLOW [PASSWORD]
    local form="\"email\":\"ada@example.org\",\"password\":\"${3:-correct horse}\""
    ask "$1/oauth/login" "${client[@]}" --json "{\"flow_id\":\"$2\",\"code_verifier\":\"$verifier\",$form}"
}
validate() { ask "$1/internal/validate" "${key[@]}" --json "{\"token\":\"$2\"}"; }
sync() { ask "$internal/internal/sync-user" "${key[@]}" --json "{\"client_id\":\"demo\",\"email\":\"ada@example.org\",$1}"; }

form='{"email":"ada@example.org","password":"correct horse"}'
expect "a user registers through the balancer" "$(ask "$public/oauth/register" "${client[@]}" --json "$form")" '201 *'
expect "internal routes are not public" "$(ask "$public/internal/validate" "${key[@]}" --json '{}')" '404 *not_found*'
expect "nor in another spelling" "$(ask --path-as-is "$public/oauth/../internal/validate" -X POST)" '400 *'
expect "nor in a third" "$(ask --path-as-is "$public/%69nternal/validate" -X POST)" '404 *not_found*'

welcome=$(login "http://$two" "$(begin "http://$one")")
expect "a flow that began at one instance ends at the other" "$welcome" '200 *access_token*'
token=$(value access_token "$welcome")
for base in "http://$one" "http://$two" "$internal"; do
    expect "the session is known at ${base#http://}" "$(validate "$base" "$token")" '200 *"active":true*'
done
expect "the first sync takes over who has registered" "$(sync '"roles":["admin"]')" '200 *"taken_over":true*'
for base in "http://$one" "http://$two"; do
    expect "whose session is over at ${base#http://}" "$(ask "$base/oauth/me" -H "Authorization: Bearer $token")" '401 *'
done
expect "the roles and a password are set through the balancer" \
    "$(sync '"roles":["admin"],"password":"battery staple"')" '200 *"taken_over":false*'
welcome=$(login "$public" "$(begin "$public")" 'battery staple')
expect "with which a login goes through it, too" "$welcome" '200 *access_token*'
token=$(value access_token "$welcome")
for base in "http://$one" "http://$two"; do
    expect "and seen at ${base#http://}" "$(ask "$base/oauth/me" -H "Authorization: Bearer $token")" '200 *\["admin"\]*'
done

# Revocation: what one instance has answered, the other knows. Many rounds, alternating.
for round in $(seq 20); do
    [ $((round % 2)) = 0 ] && here=http://$one there=http://$two || here=http://$two there=http://$one
    token=$(value access_token "$(login "$here" "$(begin "$there")" 'battery staple')")
    [[ $(validate "$there" "$token") == '200 '*'"active":true'* ]] || fail "round $round: a session is not seen"
    ask "$here/internal/sync-user" "${key[@]}" --json '{"client_id":"demo","email":"ada@example.org","active":false}' >/dev/null
    [[ $(validate "$there" "$token") == '200 '*'"active":false'* ]] || fail "round $round: a revocation is not seen"
    sync '"active":true' >/dev/null
done
echo "ok: 20 sessions were opened at one instance, seen at the other, revoked and seen to be, at once"

# The limit is divided: 20 logins a minute at each, of which this has used some; the rest of 40 and not one more.
passed=0
flow=$(begin "$public") since=$SECONDS
for _ in $(seq 60); do
    [[ $(login "$public" "$flow" 'a wrong one') == '401 '* ]] && passed=$((passed + 1))
done
# Over both, two come back every three seconds.
[ "$passed" -ge 15 ] && [ "$passed" -le $((42 + (SECONDS - since) * 2 / 3)) ] ||
    fail "$passed logins passed the divided limit"
echo "ok: of 60 logins through the balancer, $passed passed the limit that both divide"

# The database comes back after a restart, without one of ours.
bash -c "$POSTGRES_RESTART" >/dev/null
token=''
sync '"active":true' >/dev/null || true
for _ in $(seq 50); do
    answer=$(sync '"active":true')
    [[ $answer == '200 '* ]] && break
    [[ $answer == '503 '* ]] || fail "while the database is away: $answer"
    sleep 0.1
done
expect "after a restart of the database both go on" "$answer" '200 *'

# One is killed: the balancer asks the other. What was in flight may fail; what comes then does not.
kill -KILL "${pids[one]}"
wait "${pids[one]}" 2>/dev/null || true
sleep 1.5
for _ in $(seq 20); do
    [[ $(ask "$public/version") == '200 '* ]] || fail "after a kill not all requests are answered"
done
echo "ok: with one instance killed the other answers all"
launch one "$one"
ready one
sleep 1

# One is replaced while requests go on: none may fail.
: >"$folder/statuses.log"
(while [ ! -e "$folder/stop" ]; do curl -s -o /dev/null -w '%{http_code}\n' "$public/version" >>"$folder/statuses.log"; done) &
load=$!
sleep 0.3
kill -TERM "${pids[two]}"
wait "${pids[two]}" || fail "it did not end well"
launch two "$two"
ready two
sleep 1
touch "$folder/stop"
wait "$load"
lost=$(grep -cv '^200$' "$folder/statuses.log" || true)
[ "$lost" = 0 ] || fail "$lost of $(wc -l <"$folder/statuses.log") requests failed while an instance was replaced"
echo "ok: $(wc -l <"$folder/statuses.log") requests were answered while an instance was replaced, none failed"

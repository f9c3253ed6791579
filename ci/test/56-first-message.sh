#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Does what book/first-message.md says, word for word, in an empty folder; then lets each language receive from each.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/debian gcc libc6-dev pkg-config python3 python3-venv
scratch

# The page's blocks, one file each: a number, and what is to be done with it.
awk -v out="$scratch" '
    /^<!-- (run|receive|send)/ { what = $2; sub(/:$/, "", what); says = ""
        if (what == "send") { says = $0; sub(/^<!-- send: /, "", says); sub(/ -->$/, "", says) } }
    /^```sh$/ && what { file = sprintf("%s/block-%02d-%s", out, ++number, what); printf "" > file
        if (says) print says > (file ".says"); inside = 1; what = ""; next }
    /^```$/ { inside = 0 }
    inside { print > file }
' book/first-message.md
[ "$(ls "$scratch"/block-*-send | wc -l)" -eq 3 ] || fail "the page has lost a language"

mkdir "$scratch/empty" "$scratch/names"
export DOORBELL_RUNTIME_DIR=$scratch/names
ln -s "$PWD" "$scratch/empty/doorbell"
# What a fresh clone builds into itself goes where the other tests have built it. The page's own project does not.
cd "$scratch/empty"
limit() { timeout --kill-after=5 "$@"; }
# A socket's file is there before anybody listens at it.
listens() { awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix; }
wait_for() { for _ in $(seq 1200); do [ ! -S "$1" ] || ! listens "$1" || return 0; sleep 0.05; done; fail "nobody listens at $1"; }
# exchange RECEIVE SEND TEXT: the first script receives what the second sends.
exchange() {
    limit 120 bash -eu "$1" >received & pids+=($!)
    local receiver=$!
    wait_for "$DOORBELL_RUNTIME_DIR/hello.sock"
    limit 120 bash -eu "$2" || fail "$2 failed"
    wait "$receiver" || fail "$1 failed"
    [ "$(cat received)" = "$3" ] || fail "$1 received '$(cat received)' instead of '$3'"
}
for block in "$scratch"/block-??-*; do
    case $block in
        *.says) ;;
        *-run) limit 900 bash -eu "$block" ;;
        *-receive) receive=$block ;;
        *-send) exchange "$receive" "$block" "$(cat "$block.says")" ;;
    esac
done
for receive in "$scratch"/block-??-receive; do
    for send in "$scratch"/block-??-send; do
        exchange "$receive" "$send" "$(cat "$send.says")"
    done
done
echo "56-first-message: three languages, each with each, passed"

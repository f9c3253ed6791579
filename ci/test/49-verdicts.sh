#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Exports read by DuckDB and by Prometheus's own parser; the stock queries of the book; the verbs that answer a question on results
# that lie in the tree.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
doorbell=$(ci/built)
ci/install/49-readers.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
results=lab/command/tests/data
for name in ping ping-again survey; do
    cp "$results/$name.json" "$out/"
    "$doorbell" export prometheus "$out/$name.json" -o "$out/$name.prom"
    "$doorbell" export csv "$out/$name.json" -o "$out/$name.figures.csv"
    "$doorbell" export csv-bins "$out/$name.json" -o "$out/$name.bins.csv"
done
"$(ci/readers)/bin/python" ci/readers.py "$out" book/queries.md

# A broken export does not pass for a sound one.
head -c 20000 "$out/survey.prom" >"$out/cut.txt" && mv "$out/cut.txt" "$out/survey.prom"
! "$(ci/readers)/bin/python" ci/readers.py "$out" book/queries.md >/dev/null 2>&1 ||
    fail "a cut export was taken for whole: this test proves nothing"

# says FILE TEXT...: the text is in the file.
says() {
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$out/$file" || fail "$file lacks: $text: $(cat "$out/$file")"
    done
}
ends() {
    local wanted=$1 file=$2 code=0
    shift 2
    "$doorbell" "$@" >"$out/$file" 2>&1 || code=$?
    [ "$code" = "$wanted" ] || fail "$* ended with $code, not $wanted: $(cat "$out/$file")"
}
ends 4 pick.txt pick --need epoll --from "$results/survey.json" --details
says pick.txt 'not a candidate' 'no descriptor' 'Again: doorbell survey'
ends 3 gate.txt gate --max 1us --from "$results/survey.json"
says gate.txt 'FAIL p99.9' '95 % confidence' 'The longest wake'
ends 3 check.txt check --baseline "$results/ping.json" --from "$results/ping-again.json" --fail-if 'p50>1us'
says check.txt 'Worse than' 'broken'

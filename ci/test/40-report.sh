#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Opens reports in a real browser, from `file:`, with scripts and without: of a survey, of two runs over each other, and of one
# small run of every other experiment. Leaves pictures of what a reader sees in target/report/.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/browser.sh
out="$PWD/target/report"
rm -rf "$out"
mkdir -p "$out/runs"
results=lab/command/tests/data
doorbell=$(ci/built)

has() { grep -qF -- "$2" "$out/$1" || fail "$1 lacks $2"; }
# run NAME ARGUMENT... : a run whose verdict, whatever it is, goes on the page. Seconds, on a busy machine minutes.
run() {
    local name=$1 status=0
    shift
    timeout 600 "$doorbell" "$@" -q -o "$out/runs/$name.json" >"$out/runs/$name.txt" 2>&1 || status=$?
    case $status in 0 | 3 | 4) ;; *) fail "$name ended with $status: $(tail -3 "$out/runs/$name.txt")" ;; esac
    [ -s "$out/runs/$name.json" ] && return
    rm -f "$out/runs/$name.json"
    # Only where the machine cannot be measured so, which is status 4, is there nothing to show.
    [ "$status" = 4 ] || fail "$name ended with $status and has no result: $(tail -3 "$out/runs/$name.txt")"
    ci/skipped "40-report: no page of $name: $(tail -1 "$out/runs/$name.txt")"
}

"$doorbell" report -q "$results/survey.json" -o "$out/survey.html"
"$doorbell" report -q "$results/ping.json" "$results/ping-again.json" -o "$out/two.html"
"$doorbell" report -q "$results/survey.json" --picture placements -o "$out/placements.svg"

run switch switch getppid switch-futex --count 200 --blocks 1
run fanout fanout sem-posix-named futex -n 4,8 --rounds 3 --interval 5ms --blocks 1
run tasks tasks call stackless thread-futex -n 10,20 -y 10 --count 20 --blocks 1
run io io --dir "$out" --file-size 4M --count 50 --blocks 1
run net io --net --count 20 --blocks 1 --gap 1ms
run idle idle futex --gap 10us,1ms --count 50 --blocks 1
run anatomy anatomy futex --gap 1ms --count 100 --blocks 1
run why why --time 2s
run pick pick --need sleep --blocks 1 --anyway
run spin spin --gap 10us,100us --time 50ms --blocks 1 --anyway
run gate gate --max 1ms --time 1s --anyway
"$doorbell" report -q "$out"/runs/*.json -o "$out/all.html"

ci/browser.py "$out" "$out"/{survey,two,all}.html || fail "a page is not as it should be"
for page in survey two all; do
    pdftotext -layout "$out/$page.pdf" "$out/$page.txt"
    for text in 'All times in' 'p99.9' 'Warnings' 'How to repeat it' '--plan' 'Nothing on this page'; do
        has "$page.txt" "$text"
    done
    ! grep -qF 'Copy the results' "$out/$page.txt" || fail "$page: a button that only the script makes"
done
has two.txt 'null (the harness itself)'
for run in "$out"/runs/*.json; do
    name=$(basename "$run" .json)
    has all.html "id=\"$name-top\""
done
# What a page carries are the results themselves.
sed -n 's/.*id="results">\([^<]*\)<.*/\1/p' "$out/survey.html" | base64 -d | gunzip |
    python3 -c 'import json, sys; assert json.load(sys.stdin) == [json.load(open(sys.argv[1]))]' "$results/survey.json"
[ "$(stat -c %s "$out/all.html")" -lt 5000000 ] || fail "the page of everything has $(stat -c %s "$out/all.html") bytes"
pdftoppm -r 60 -png -l 6 "$out/survey.pdf" "$out/print"
for picture in "$out"/*-{light,dark,narrow}.png; do
    # A page of one colour compresses to next to nothing.
    [ "$(stat -c %s "$picture")" -gt 20000 ] || fail "$picture is blank"
done
echo "40-report: pictures in $out"

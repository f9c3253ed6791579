#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Squall: it builds without a complaint, its counts of instructions are the same twice and within their bars, hostile processes
# reach nothing but themselves on one hart and on four, and no wake-up is lost in an hour of random ones. ci/soak/68-squall.sh does
# the last two for longer.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "68-squall: $*" >&2; exit 1; }
step() { echo "== $*"; }
# squall NAME ARGUMENT... : what the machine says goes to $scratch/NAME; its status must be 0.
squall() {
    local name=$1
    shift
    timeout 600 squall/run "$@" </dev/null >"$scratch/$name" 2>&1 || fail "squall/run $* says $(tail -5 "$scratch/$name")"
}

step "one form, no warning"
(cd squall && cargo fmt --check)
squall/build lint >/dev/null

step "two runs of all arms give the same counts"
words="call:100:100 future:100:100 stackful:100:100 stackful:1000:100 kernel-task:100:100 stackful-across:100:100
    future-across:100:100 process:100:100 flush stackful-across:100:100 process:100:100 keep fork-copy:100
    process-kernel-stack:100:100 fork-copy-kernel-stack:100 fork-copy-on-write:100 life-future:100 document-coroutine:100 document-coroutine:380 document-process:100
    document-process:380 document-coroutine-head:100 document-process-head:100 document-coroutine-head:380
    document-process-head:380 stackful:100000:10 future:100000:10"
for turn in 1 2; do
    # shellcheck disable=SC2086
    squall "turn-$turn" --memory 1024 $words
    grep '^{' "$scratch/turn-$turn" >"$scratch/said-$turn"
done
diff "$scratch/said-1" "$scratch/said-2" || fail "two runs of the same words differ"
python3 - "$scratch/said-1" <<'PYTHON'
import json, sys
said = {(r["subject"], r["tasks"]): r for r in map(json.loads, open(sys.argv[1])) if "subject" in r}
each = lambda subject, tasks=100: said[subject, tasks]["instructions"] / said[subject, tasks]["done"]
def holds(text):
    assert eval(text), f"not so: {text}"
# The bar of a hand-off in one space, through the queue with priorities.
holds("each('stackful') <= 60")
# No change of slope from 100 to 100,000 tasks.
holds("abs(each('stackful', 100000) - each('stackful')) < 1")
holds("abs(each('future', 100000) - each('future')) < 1")
# The bar across spaces, beside the classic mode.
holds("each('stackful-across') <= each('process') / 3")
# The leaner of the two classic ways is the rival.
holds("each('process') < each('process-kernel-stack')")
holds("each('stackful-across-flush') > each('stackful-across')")
# That queue hides what it was to show; without it any number of tasks gives the same ratio.
def ratio(tasks, queue):
    return said["document-process" + queue, tasks]["instructions"] / said["document-coroutine" + queue, tasks]["instructions"]
holds("ratio(100, '') > 1.05 > ratio(380, '') > 1")
holds("abs(ratio(100, '-head') / ratio(380, '-head') - 1) < 0.01 and ratio(100, '-head') > 4")
# The document's queue, replayed from its arithmetic: entries moved.
holds("said['document-coroutine', 100]['moves'] == 10416")
# The replay has 150,384: it begins elsewhere in the ring.
holds("said['document-coroutine', 380]['moves'] == 150416")
# The faulty ring lets tasks of one space stand side by side.
holds("said['document-process', 380]['space_changes'] < 300")
holds("said['document-process-head', 380]['space_changes'] >= 380")
PYTHON

step "a machine that lacks what Squall needs is told the one command"
mkdir "$scratch/few"
for tool in bash cat dirname test xargs; do ln -s "$(type -P $tool)" "$scratch/few/$tool"; done
for script in run build linux/build; do
    status=0
    printf '#!/bin/sh\necho /nowhere\n' >"$scratch/few/rustc"
    chmod +x "$scratch/few/rustc"
    PATH=$scratch/few squall/$script </dev/null >"$scratch/lacking" 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "status $status of squall/$script: $(cat "$scratch/lacking")"
    grep -q "run: ci/install/squall.sh" "$scratch/lacking" || fail "squall/$script says $(cat "$scratch/lacking")"
done

step "the study's experiments as a result, and the report that judges them"
export XDG_STATE_HOME=$scratch/state
doorbell=$(ci/built)
"$doorbell" vm run --guest squall -- tasks --document -o "$scratch/study.json" >"$scratch/study" 2>&1 ||
    fail "$(tail -5 "$scratch/study")"
"$doorbell" report "$scratch/study.json" -o "$scratch/study.html" >/dev/null
python3 - "$scratch/study.json" "$scratch/study.html" <<'PYTHON'
import json, sys
records = json.load(open(sys.argv[1]))["records"]
assert len(records) == 74 and all(record["outcome"]["kind"] == "done" for record in records), len(records)
page = open(sys.argv[2]).read()
assert "contradicted here" in page and "confirmed here" in page, "the report has no rulings"
PYTHON

step "a word that is not understood"
status=0
squall/run nonsense </dev/null >"$scratch/nonsense" 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "status $status: $(tail -3 "$scratch/nonsense")"
grep -q '"not_understood":"nonsense"' "$scratch/nonsense" || fail "$(tail -3 "$scratch/nonsense")"

step "the document's queue breaks at 384, ours does not"
status=0
squall/run document-coroutine:384 </dev/null >"$scratch/full" 2>&1 || status=$?
[ "$status" -eq 0 ] || grep -q "has no room for task" "$scratch/full" || fail "$(tail -3 "$scratch/full")"
squall ours life-future:384 stackful:384:2

step "hostile processes beside an honest pair, on one hart and on four"
for harts in 1 4; do
    squall hostile --harts $harts hostile
    [ "$(grep -c '^{"hostile"' "$scratch/hostile")" -eq 25 ] || fail "$(tail -5 "$scratch/hostile")"
done

step "a guest's hour of random spawning, waking, sleeping and killing on four harts, twice the same"
for turn in 1 2; do
    squall "soak-$turn" --harts 4 soak:80:1
done
diff "$scratch/soak-1" "$scratch/soak-2" || fail "two runs of the same words differ"
python3 - "$scratch/soak-1" <<'PYTHON'
import json, sys
said = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
seconds = next(r["guest_seconds"] for r in said if "soak" in r)
assert seconds > 3600, f"{seconds} s of guest time are less than an hour"
PYTHON

step "the same by the host's clock, with harts that run at the same time"
squall wall --harts 4 --wall-clock hostile soak:10:1:14
echo "68-squall: all is as it should be"

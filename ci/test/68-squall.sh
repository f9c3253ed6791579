#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Squall: it builds without a complaint, its counts of instructions are the same twice and within their bars, hostile processes
# reach nothing but themselves on one hart and on four, and no wake-up is lost in an hour of random ones. ci/soak/68-squall.sh does
# the last two for longer.
# Inputs: squall lab/command/src/cli/squall.rs uintr/vm/src/squall.rs
# Inputs: lab/verdict/src/claims/coroutines.rs
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/squall.sh
scratch
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
words="call:100:100 future:100:100 stackful:100:100 stackful:1000:100 kernel-task:100:100 stackful-across:100:100 stackful-across-3-spaces:99:100
    future-across:100:100 process:100:100 process-in-entry:100:100 stackful-keeping-12:100:100
    stackful-across-keeping-12:100:100 flush stackful-across:100:100 process:100:100 keep fork-copy:100
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
# The bar across spaces, of two or more: a third of a process that goes the kernel's one way for calls, in Rust. Not of one for which
# yielding has a way of its own in the trap's entry, as giving way has; that one is shorter in any case, and by how much is in the book.
holds("each('stackful-across') <= each('process') / 3")
holds("each('stackful-across-3-spaces', 99) <= each('process') / 3")
holds("each('stackful-across') < each('process-in-entry') < each('process') < each('process-kernel-stack')")
# A task that keeps twelve values pays for it: a store and a load each, and some moves.
for subject in ("stackful", "stackful-across"):
    holds(f"20 <= each('{subject}-keeping-12') - each('{subject}') <= 30")
# All of it assembly but the turn, which is a load, an addition and a store: it hangs on no compiler's choice beyond that.
holds("round(each('stackful')) == 28")
holds("round(each('stackful-across')) == round(each('stackful-across-3-spaces', 99)) == 77")
holds("each('stackful-across-flush') > each('stackful-across')")
# That queue hides what it was to show; without it any number of tasks gives the same ratio.
def ratio(tasks, queue):
    return said["document-process" + queue, tasks]["instructions"] / said["document-coroutine" + queue, tasks]["instructions"]
holds("ratio(100, '') > 1.05 > ratio(380, '') > 1")
holds("abs(ratio(100, '-head') / ratio(380, '-head') - 1) < 0.01 and ratio(100, '-head') > 4")
def replay(tasks):
    """Entries that the document's queue moves, from its arithmetic: 400 entries, lengths modulo 2 to the 64 and then modulo 400."""
    ring, front, tail, moves = [None] * 400, 0, 0, 0
    length = lambda: (tail - front) % 2**64 % 400
    for task in range(tasks):
        ring[tail], tail = task, (tail + 1) % 400
    while length():
        head = ring[front]
        for _ in range(length()):
            entry, front, moves = ring[front], (front + 1) % 400, moves + 1
            if entry != head:
                ring[tail], tail, moves = entry, (tail + 1) % 400, moves + 1
    return moves
holds("[said['document-coroutine', n]['moves'] for n in (100, 380)] == [replay(100), replay(380)] == [10416, 150416]")
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
assert len(records) == 87 and all(record["outcome"]["kind"] == "done" for record in records), len(records)
page = open(sys.argv[2]).read()
assert "contradicted here" in page and "confirmed here" in page, "the report has no rulings"
PYTHON

step "a word that is not understood"
status=0
squall/run nonsense </dev/null >"$scratch/nonsense" 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "status $status: $(tail -3 "$scratch/nonsense")"
grep -q '"not_understood":"nonsense"' "$scratch/nonsense" || fail "$(tail -3 "$scratch/nonsense")"
status=0
squall/run --harts 4 kills:1:1 </dev/null >"$scratch/refused" 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "status $status of a trial that might not end: $(tail -3 "$scratch/refused")"
grep -q "add --wall-clock" "$scratch/refused" || fail "$(tail -3 "$scratch/refused")"

step "the document's queue breaks at 384 once a task has been through it, ours does not"
squall unused document-coroutine:384 document-coroutine:383:100
status=0
squall/run document-coroutine:384:100 </dev/null >"$scratch/full" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "status $status: $(tail -3 "$scratch/full")"
grep -q "has no room for task 383" "$scratch/full" || fail "$(tail -3 "$scratch/full")"
squall ours life-future:384 stackful:384:2

step "hostile processes beside an honest pair, on one hart and on four"
for harts in 1 4; do
    squall hostile --harts $harts hostile
    [ "$(grep -c '^{"hostile"' "$scratch/hostile")" -eq 34 ] || fail "$(tail -5 "$scratch/hostile")"
done

step "an alarm is not late because another process takes half the memory at once"
squall late late
python3 - "$scratch/late" <<'PYTHON'
import json, sys
[said] = [said for line in open(sys.argv[1]) if line.startswith("{") and "late" in (said := json.loads(line))]
# Ticks of a hundred instructions. Zeroed in one go it would be twenty million instructions.
assert said["late"] < 2000 and said["sleeps"] > 100, said
PYTHON

step "numbers of spaces that are used again, on processors that tell 256 of them apart, and 128"
for bits in 8 7; do
    squall "numbers-$bits" spaces:256 asid-bits:$bits numbers
done
# Each of 20 processes is copied and ended. With a number for each, the first ones flush nothing and those with a used number once;
# without, every change of address space does.
grep -q '"numbers":true,"flushes":\[0,20\]' "$scratch/numbers-8" || fail "$(tail -3 "$scratch/numbers-8")"
grep -q '"numbers":true,"flushes":\[40,40\]' "$scratch/numbers-7" || fail "$(tail -3 "$scratch/numbers-7")"
squall few-numbers asid-bits:8 stackful-across:100:100
grep -q '"stackful-across-flush".*"flushes":10000,' "$scratch/few-numbers" || fail "$(tail -3 "$scratch/few-numbers")"
status=0
squall/run asid-bits:8 keep </dev/null >"$scratch/keep" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "status $status of keeping what cannot be told apart: $(tail -3 "$scratch/keep")"

step "who makes children without end and waits for none leaves numbers to others"
squall zombies spaces:64 zombies:64

step "whoever gives way early keeps its share of the hart, and no more"
squall slices slices
python3 - "$scratch/slices" <<'PYTHON'
import json, sys
[[early, never]] = [json.loads(line)["slices"] for line in open(sys.argv[1]) if line.startswith('{"slices"')]
assert 0 < early <= never <= early * 1.5, f"of two processes one had {early} ticks, the other {never}"
PYTHON

# Each judges itself: a wake-up that is lost, memory that is kept, or a hang is a status that is not 0.
step "two guest hours of random spawning, waking, sleeping and killing on four harts"
for seed in 1 2; do
    squall "soak-$seed" --harts 4 "soak:80:$seed"
    python3 - "$scratch/soak-$seed" <<'PYTHON'
import json, sys
said = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
seconds = next(r["guest_seconds"] for r in said if "soak" in r)
assert seconds > 3600, f"{seconds} s of guest time are less than an hour"
PYTHON
done

step "the same by the host's clock, with harts that run at the same time"
squall wall --harts 4 --wall-clock hostile soak:10:1:14 kills:20:1
squall stale --harts 2 --wall-clock spaces:16 stale
echo "68-squall: all is as it should be"

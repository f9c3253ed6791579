#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Squall on four harts: a guest's day of random spawning, waking, sleeping and killing, where instructions are the clock and idle time
# costs nothing, so that as a rule it repeats exactly; then hostile processes beside an honest pair, and processes killed at random moments, by
# the host's clock, where harts run at the same time. SQUALL_ROUNDS says how long the day is, of which 1,900 rounds are more than 24
# hours, SQUALL_TIMES how often the rest is done. Then the lab under Linux on the same machine: what it takes for a hand-off and a fork is far above Squall's.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
scratch
squall/build >/dev/null
failed=0
# told NAME ARGUMENT... : runs it, shows the end of what it says if it fails, and goes on.
told() {
    local name=$1
    shift
    timeout 7200 squall/run --harts 4 "$@" </dev/null >"$scratch/said" 2>&1 && return
    failed=$((failed + 1))
    echo "68-squall: $name: $(tail -5 "$scratch/said")"
}
told "a day" "soak:${SQUALL_ROUNDS:-1900}:1"
grep '"soak"' "$scratch/said" || true
told "all numbers of spaces, and one again" numbers
for turn in $(seq "${SQUALL_TIMES:-10}"); do
    told "hostile, turn $turn" --wall-clock hostile
    told "soak, seed $turn" --wall-clock "soak:40:$turn:14"
    told "killed at random moments, seed $turn" --wall-clock "kills:100:$turn"
done
if timeout 3600 squall/linux/run "$scratch/linux.json" tasks call stackful thread-yield process-futex process-yield life-fork \
    life-fork-exec -n 10 -y 100 --blocks 1 --count 2 >"$scratch/said" 2>&1; then
    python3 - "$scratch/linux.json" <<'PYTHON' || failed=$((failed + 1))
import json, sys
medians = {}
for record in json.load(open(sys.argv[1]))["records"]:
    for quantity in ("hand-off", "life"):
        if quantity in record["series"]:
            medians[next(where["subject"] for where in record.values() if isinstance(where, dict) and "pattern" in where)] = (
                record["series"][quantity]["p50_ns"])
            break
print("68-squall: instructions under Linux:", medians)
# Squall: 28 in one space, 79 to another, 80,200 for a fork.
assert medians["stackful"] < medians["thread-yield"] / 10, "a switch of stacks is no system call"
assert min(medians["process-futex"], medians["process-yield"]) > 79 * 20 and medians["life-fork"] > 79_800 * 3
assert medians["life-fork-exec"] > medians["life-fork"]
PYTHON
else
    failed=$((failed + 1))
    echo "68-squall: Linux: $(tail -5 "$scratch/said")"
fi
echo "68-squall: $failed of $((3 + 3 * ${SQUALL_TIMES:-10})) runs failed"
[ "$failed" -eq 0 ]

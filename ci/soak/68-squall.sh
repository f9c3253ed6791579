#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Squall on four harts: a guest's day of random spawning, waking, sleeping and killing, where instructions are the clock and idle time
# costs nothing, so that it repeats exactly; then hostile processes beside an honest pair by the host's clock, where harts run at the
# same time. SQUALL_ROUNDS says how long the day is, of which 1,900 rounds are more than 24 hours, SQUALL_TIMES how often the rest is
# done.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
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
for turn in $(seq "${SQUALL_TIMES:-10}"); do
    told "hostile, turn $turn" --wall-clock hostile
    told "soak, seed $turn" --wall-clock "soak:40:$turn:14"
done
echo "68-squall: $failed of $((1 + 2 * ${SQUALL_TIMES:-10})) runs failed"
[ "$failed" -eq 0 ]

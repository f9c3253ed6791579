#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Squall on four harts: hostile processes beside an honest pair, and random spawning, waking, sleeping and killing, again and again.
# SQUALL_TIMES says how often.
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
    timeout 1200 squall/run --harts 4 --wall-clock "$@" </dev/null >"$scratch/said" 2>&1 && return
    failed=$((failed + 1))
    echo "68-squall: $name: $(tail -5 "$scratch/said")"
}
for turn in $(seq "${SQUALL_TIMES:-10}"); do
    told "hostile, turn $turn" hostile
    told "soak, seed $turn" "soak:40:$turn"
done
echo "68-squall: $failed of $((2 * ${SQUALL_TIMES:-10})) runs failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# `doorbell anatomy` and `doorbell why` end to end with the kernel's own events, and no trace buffer left behind. Where the events
# cannot be had, the command must say so with exit status 4, and that is what is tested.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
doorbell=$(ci/built)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Six blocks, and three tries: on a busy machine not each of them has a plausible pair with tracing and without.
for _ in 1 2 3; do
    status=0
    timeout 600 "$doorbell" anatomy futex --placement unpinned --gap 200us --time 60ms --blocks 6 --details -q -o "$folder/a.json" \
        >"$folder/a.txt" 2>"$folder/a.err" || status=$?
    if [ "$status" = 4 ]; then
        # Only a kernel that hides its events from this user is a reason.
        grep -qE 'trace events may not be used|has no tracefs' "$folder/a.err" || fail "exit 4 without a reason: $(cat "$folder/a.err")"
        [ "$(id -u)" != 0 ] || ! grep -qw tracefs /proc/filesystems || grep -q 'Operation not permitted\|Permission denied' "$folder/a.err" \
            || fail "root has tracefs and was refused: $(cat "$folder/a.err")"
        nothing_tried "$(head -1 "$folder/a.err")"
    fi
    [ "$status" = 0 ] || fail "exit $status: $(cat "$folder/a.err")"
    ! grep -q 'What tracing costs' "$folder/a.txt" || break
done
grep -q 'What tracing costs' "$folder/a.txt" || ci/skipped "48-anatomy: this machine is too busy for a plausible pair"
grep -q 'scheduled in' "$folder/a.txt" || fail "no stages: $(cat "$folder/a.txt")"
"$doorbell" report -q "$folder/a.json" -o "$folder/a.html"
grep -q 'Where the time goes' "$folder/a.html" || fail "no waterfall in the report"

timeout 600 "$doorbell" why futex --time 1s --worst 2 --details -q -o "$folder/w.json" >"$folder/w.txt" || fail "why: exit $?: $(cat "$folder/w.txt")"
grep -qE 'The slowest of [0-9,]+ wake-ups? took .* cause: ' "$folder/w.txt" || fail "no verdict: $(cat "$folder/w.txt")"
grep -q 'To repeat it: ' "$folder/w.txt" || fail "no way to repeat it"

# Seen from a namespace of its own, as the command mounted it: no buffer is left of a process that is gone. What another suite's
# killed run left, its next run removes.
unshare --mount sh -ec '
    [ -d /sys/kernel/tracing/instances ] || mount -t tracefs nodev /sys/kernel/tracing
    for _ in $(seq 60); do
        left=
        for buffer in /sys/kernel/tracing/instances/doorbell-*; do
            pid=${buffer##*/doorbell-}; pid=${pid%%-*}
            [ -d "/proc/$pid" ] || [ ! -e "$buffer" ] || left=$buffer
        done
        [ -n "$left" ] || exit 0
        sleep 1
    done
    echo "48-anatomy: $left is left of a process that is gone" >&2
    exit 1'

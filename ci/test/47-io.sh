#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Transfers on a disk of this machine: every way ends in figures that are proven or in a named reason, fio's results stand in the
# same table, and nothing is left behind. Judged by counts and states, never by time.
# Inputs: crate:doorbell-subjects lab/command/src/cli/io.rs lab/command/src/cli/io lab/results/src/record/fio.rs
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/fio.sh
doorbell=$(ci/built)
# Not in /tmp, which may be memory: what is transferred must lie on a disk.
mkdir -p target
scratch=$(mktemp -d -p "$PWD/target" io.XXXXXXXXXX)
trap 'rm -rf "$scratch"' EXIT
export XDG_STATE_HOME=$scratch/state

# holds FILE EXPRESSION : a statement about a result, in Python, with the document as `r` and its records by way as `by`.
holds() {
    python3 - "$1" "$2" <<'PYTHON' || fail "not so in $(basename "$1"): $2"
import json, sys
r = json.load(open(sys.argv[1]))
by = {}
for record in r["records"]:
    by.setdefault((record["configuration"]["subject"], record["configuration"]["pattern"].get("direction")), []).append(record)
kind = lambda record: record["outcome"]["kind"]
rules = lambda record: {violation["rule"] for violation in record["outcome"].get("violations", [])}
sys.exit(not eval(sys.argv[2]))
PYTHON
}

# What a disk without queues to poll lacks is skipped by name, and ends no run of anything else with a failure.
"$doorbell" io --dir "$scratch" --file-size 16M --count 300 --blocks 1 --details --quiet -o "$scratch/io.json" >"$scratch/said" 2>"$scratch/told" ||
    fail "$(cat "$scratch/told")"
[ -z "$(find "$scratch" -name 'doorbell-io-*')" ] || fail "the file was left"
holds "$scratch/io.json" "len(by) == 16 and all(kind(t) in ('done', 'skipped', 'implausible') for t in r['records'])"
holds "$scratch/io.json" "by['io-null', 'read'][0]['tally']['seen'] == 300"
# Where the folder lies on no device of its own (a container's layers), that is what is said, and nothing else.
if (holds "$scratch/io.json" "'not-from-the-device' not in rules(by['sync', 'read'][0])") 2>/dev/null; then
    holds "$scratch/io.json" "kind(by['sync', 'read'][0]) == kind(by['sync', 'write'][0]) == 'done'"
    holds "$scratch/io.json" "all(t['io']['device_operations'] >= 300 for d in ('read', 'write') for t in by['sync', d])"
    # What is called polled has figures only with queues to poll and an interrupt counter that stood still.
    holds "$scratch/io.json" "all(t['io']['device']['polls'] for (w, _), ts in by.items() if w == 'sync-hipri' or 'iopoll' in w or 'hybrid' in w for t in ts if kind(t) == 'done')"
    grep -q 'Poll or wait' "$scratch/said" || fail "no verdict: $(cat "$scratch/said")"
else
    [ ! -e "/sys/dev/block/$(stat -c %Hd:%Ld "$scratch")" ] || fail "transfers on a device are called none"
    holds "$scratch/io.json" "'not-from-the-device' in rules(by['sync', 'read'][0])"
    ci/skipped "47-io: $PWD lies on no device: what is asked of one was not tried"
fi
grep -q 'Published claims' "$scratch/said" || fail "the claims were not judged: $(cat "$scratch/said")"

echo "== fio beside it"
cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
dd if=/dev/urandom of="$scratch/file" bs=1M count=16 status=none
(cd "$scratch" && "$OLDPWD/rivals/io/compare" --doorbell "$doorbell" --file "$scratch/file" --cpu "$cpu" --rounds 1 --seconds 0.3 \
    --within 0 --output "$scratch/both.json") || fail "rivals/io/compare"
holds "$scratch/both.json" "kind(by['fio pvsync2', 'read'][0]) == kind(by['fio io_uring', 'read'][0]) == 'done'"
"$doorbell" report "$scratch/io.json" "$scratch/both.json" -o "$scratch/page.html" 2>/dev/null
grep -q 'fio pvsync2' "$scratch/page.html" || fail "fio is not on the page"
echo "47-io: all transfers are accounted for"

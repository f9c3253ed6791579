#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A trial of millions of samples takes less than 50 MB of its own: the command, the trial's host and its sides together, at any moment.
# Samples are counted in histograms and never kept.
set -euo pipefail
cd "$(dirname "$0")/../.."
doorbell=$(ci/built)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR=$folder XDG_STATE_HOME=$folder

mechanisms=null
if [ "$(nproc)" -gt 1 ]; then mechanisms='null spin'; else
    ci/skipped "41-memory: spin takes two CPUs: on one, two spinning sides wait for each other's time slices"
fi
# Two spinning sides share two CPUs with whatever else runs here, and get on only while both have one.
declare -A counts=([null]=10000000 [spin]=2000000)
for mechanism in $mechanisms; do
    "$doorbell" ping "$mechanism" --gap 0 --count "${counts[$mechanism]}" --blocks 1 --placement unpinned --quiet -o "$folder/result.json" \
        >/dev/null &
    python3 - $! <<'PYTHON'
import os, sys, time

def family(pid):
    """The process and all that descend from it."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
    except OSError:
        children = []
    return [pid] + [found for child in children for found in family(int(child))]

def share_kb(pid):
    """What it holds now, what it shares divided among those that share it; none if it is gone or a zombie.

    Without pages of files: how much of a program just built is in memory is the kernel's affair."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            held = [int(line.split()[1]) for line in file if line.startswith(("Pss_Anon:", "Pss_Shmem:"))]
            return sum(held) if held else None
    except OSError:
        return None

command, most, crowd = int(sys.argv[1]), 0, 0
while share_kb(command) is not None:
    held = [share_kb(pid) or 0 for pid in family(command)]
    most, crowd = max(most, sum(held)), max(crowd, len(held))
    time.sleep(0.02)
print(f"41-memory: {most} kB at most, in up to {crowd} processes")
# The command, the host and a side at least; fewer were not seen by this script.
sys.exit(most >= 50_000 or crowd < 3)
PYTHON
    wait $!
    python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["records"][0]["series"]["round-trip"]["count"] != int(sys.argv[2]))' \
        "$folder/result.json" "${counts[$mechanism]}" || { echo "41-memory: not ${counts[$mechanism]} samples of $mechanism"; exit 1; }
done

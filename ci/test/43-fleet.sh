#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `doorbell fleet plan` prints does what it says, as it is printed: a real Slurm and real sshd run it on two
# nodes. What a node measured is not judged: both are this machine.
# Inputs: lab/command/src/cli/fleet.rs lab/command/src/cli/fleet lab/command/src/cli/gate.rs
# Inputs: lab/verdict/src/fleet.rs
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/43-fleet.sh
doorbell=$(ci/built)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

if [ "$(id -u)" -ne 0 ] || [ "$(nproc)" -lt 2 ]; then
    ci/skipped "43-fleet: a cluster of two nodes needs root and two CPUs"
    exit 0
fi
nodes="$PWD/ci/two-nodes" slurm="$PWD/ci/slurm" sshd="$PWD/ci/sshd"
PATH=$(dirname "$doorbell"):$PATH
# Its verdict on a busy machine is any; the doctor may find that machine unfit.
verb=(gate --max 50us --time 2s --anyway)
# verdict FILE: it tells of both nodes.
verdict() { grep -qE '^(PASS|FAIL .* of|INCONCLUSIVE .* of) 2 nodes' "$1" || fail "no verdict on the fleet: $(cat "$1")"; }
# results FOLDER CPUS: of both nodes, each by its name and allowed these CPUs.
results() {
    python3 - "$1" "$2" <<'PY'
import json, pathlib, sys

folder, cpus = pathlib.Path(sys.argv[1]), sys.argv[2]
nodes = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
seen = {node: (result.get("name"), result["machine"]["topology"]["usable"]) for node, result in nodes.items()}
expected = {node: (node, cpus) for node in ("n1", "n2")}
sys.exit(0 if seen == expected else f"{folder}: {seen} instead of {expected}")
PY
}
all=$(python3 -c 'import os; cpus = sorted(os.sched_getaffinity(0)); print(",".join(map(str, cpus)))')

step "Slurm: the batch file has all CPUs of both nodes; without it the verb has one, and says so"
mkdir "$out/slurm"
cd "$out/slurm"
doorbell fleet plan slurm --nodes 2 -- "${verb[@]}" >gate.sbatch
"$nodes" "$slurm" bash -c '
    sbatch --wait --output=said gate.sbatch || true
    mkdir bound
    srun --nodes=2 --ntasks-per-node=1 sh -c '\''doorbell '"${verb[*]}"' --name "$SLURMD_NODENAME" -o "bound/$SLURMD_NODENAME.json"'\'' || true
' >out 2>&1 || fail "$(cat out slurm.log)"
results results "$all" || fail "$(cat out said slurm.log)"
verdict said
results bound "${all%%,*}" || fail "$(cat out slurm.log)"
[ "$(grep -c "warn   cpus .* 1 usable" out)" -eq 2 ] || fail "a bound verb does not say so: $(cat out)"

step "ssh: the loop reaches both nodes, and names the one that is not there"
mkdir "$out/ssh"
cd "$out/ssh"
doorbell fleet plan ssh n1 n2 192.0.2.9 -- "${verb[@]}" >gate.sh
"$nodes" "$sshd" sh gate.sh >said 2>&1 || true
results results "$all" || fail "$(cat said sshd.log)"
for line in "192.0.2.9: no result" "No result of 192.0.2.9."; do grep -qF "$line" said || fail "'$line' is not in: $(cat said)"; done
grep -qE '^(FAIL|INCONCLUSIVE) .* of 3 nodes' said || fail "a node without a result passes: $(cat said)"

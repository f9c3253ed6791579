#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The script for a machine with a GPU, tried on a driver made for tests: every step ends, each result says that it is of no GPU, and
# the page is made.
# Inputs: crate:doorbell-subjects lab/command/src/cli/gpu.rs lab/command/src/cli/gpu lab/report/src/gpu.rs library/doorbell/tests/gpu ci/gpu
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
doorbell=$(ci/built)
scratch
mkdir "$scratch/kit"
cp "$doorbell" "$scratch/kit/doorbell"
cc -shared -fPIC -O1 -pthread -o "$scratch/driver.so" library/doorbell/tests/gpu/driver.c
QUICK=1 DOORBELL_CUDA_LIBRARY=$scratch/driver.so ci/gpu run "$scratch/kit" "$scratch/results"
[ "$(wc -l <"$scratch/results/steps")" = 7 ] || fail "steps: $(cat "$scratch/results/steps")"
while read -r name status _; do
    [ "$status" = 0 ] || fail "$name ended with $status: $(cat "$scratch/results/$name.err")"
    grep -q 'no GPU: the driver made for tests' "$scratch/results/$name.txt" || fail "$name does not say that it is of no GPU"
done <"$scratch/results/steps"
grep -q 'no wheel in the kit' "$scratch/results/torch.txt" || fail "the loop of PyTorch was left out and nothing says so"
[ -s "$scratch/results/gpu.html" ] || fail "no page"

# As long as it says that it takes at most: what each step may take, and the loops beside them.
limits=$(grep -oE '(measure|timeout) [0-9]+ ' ci/gpu | awk '{ sum += $2 } END { print sum }')
[ "$limits" -le 480 ] || fail "its limits add up to $limits s, more than eight minutes"

# Without a driver the run says why, and that nothing was measured.
if DOORBELL_CUDA_LIBRARY=/nowhere.so "$doorbell" gpu gpu-launch --quiet -o "$scratch/none.json" >"$scratch/none.txt" 2>&1; then
    fail "nothing was measured, and it ended well"
fi
grep -q "install NVIDIA's driver" "$scratch/none.txt" || fail "it does not say what to do: $(cat "$scratch/none.txt")"
echo "38-gpu: the script for a GPU runs to its end"

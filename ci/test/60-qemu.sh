#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The emulator with user interrupts: built if it is not, then its own tests, the conformance
# program, the planted faults, and random steps compared with the model. Everything is judged by
# counts and states, never by time.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

qemu=$(qemu/build)
bin=$(dirname "$qemu")
run=(qemu/conformance/run --qemu "$qemu" --quiet --timeout 300)

echo "== QEMU's test of the properties, the MSRs, migration and the counters"
QTEST_QEMU_BINARY=$qemu "$bin/uintr-test" >"$scratch/qtest" 2>&1 || {
    cat "$scratch/qtest"
    exit 1
}
grep '^ok' "$scratch/qtest"

echo "== conformance: two CPUs, xAPIC"
"${run[@]}"
echo "== conformance: four CPUs, x2APIC, UIRET always opens"
"${run[@]}" --cpus 4 --x2apic --cpu max,uiret-uif=off
echo "== conformance: 48 bits of address, no XSAVES, one thread for all CPUs"
"${run[@]}" --cpu max,la57=off,xsaves=off --machine pc --thread single
echo "== saved in one process, gone on with in another"
"${run[@]}" --move
"${run[@]}" --move --x2apic --thread single
echo "== a CPU without user interrupts"
"${run[@]}" --cpu max,uintr=off

echo "== every SENDUIPI accounted for"
"${run[@]}" --items none --sends 300000 --cpus 3

echo "== planted faults"
qemu/conformance/faults --qemu "$qemu"

echo "== the model follows the emulator"
follow() {
    "${run[@]}" --items none --trace "$scratch/trace" "$@" >"$scratch/steps"
    DOORBELL_UINTR_TRACE=$scratch/trace cargo test -q -p doorbell-uintr --test emulator \
        given_by_the_environment -- --nocapture | grep 'without a difference'
}
follow --steps 100000 --cpus 4 --thread single --seed 11
follow --steps 10000 --cpus 2 --thread multi --seed 12 --x2apic

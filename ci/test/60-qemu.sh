#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The emulator with user interrupts: built if it is not, then its own tests, the conformance
# program, the planted faults, and random steps compared with the model. Everything is judged by
# counts and states, never by time.
# Inputs: uintr/qemu/build uintr/qemu/patches uintr/qemu/conformance uintr/qemu/reports crate:doorbell-uintr
# Long: dozens of boots of the conformance program.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ci/install/qemu.sh

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

qemu=$(uintr/qemu/build)
bin=$(dirname "$qemu")
run=(uintr/qemu/conformance/run --qemu "$qemu" --quiet --timeout 300)

echo "== QEMU's test of the properties, the MSRs, migration and the counters"
QTEST_QEMU_BINARY=$qemu "$bin/uintr-test" >"$scratch/qtest" 2>&1 || {
    cat "$scratch/qtest"
    exit 1
}
grep '^ok' "$scratch/qtest"

echo "== QEMU's system tests"
system_tests() {
    local src
    src=$(dirname "$bin")/src
    make --silent -C "$scratch" -f "$src/tests/tcg/Makefile.target" SRC_PATH="$src" \
        TARGET=x86_64-softmmu TARGET_NAME=x86_64 CC=gcc TIMEOUT=60 QEMU="$qemu -nic none $1" "${@:2}" \
        >"$scratch/make" 2>&1
}
system_tests '' run || {
    cat "$scratch/make" "$scratch"/*.out
    exit 1
}
grep TEST "$scratch/make"

echo "== each of them fails with a fault in what it tests"
faulty=$scratch/faulty-system-x86_64
while read -r test fault; do
    [[ $fault == *=* ]] || fault=x-uintr-fault=$fault
    option="-global x86_64-cpu.$fault"
    rm -f "$scratch"/*.out
    if [[ $test == /* ]]; then
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$qemu" "$option" >"$faulty"
        chmod +x "$faulty"
        judge=(env "QTEST_QEMU_BINARY=$faulty" "$bin/uintr-test" -p "$test")
    else
        judge=(system_tests "$option" "run-$test")
    fi
    # An assertion aborts: the inner shell's remark on it goes with the rest.
    if ("${judge[@]}" || exit 1) >"$scratch/judged.out" 2>&1 </dev/null; then
        echo "$test passes with $fault"
        exit 1
    fi
    # It has to be the test's own judgement.
    grep -qE 'not so:|^ERROR:.*uintr-test' "$scratch"/*.out || {
        cat "$scratch"/*.out "$scratch/make"
        exit 1
    }
    echo "$test fails with $fault"
done <<FAULTS
cr-reserved cr4-unchecked
xsave-compacted xrstors-any-header
uintr-msr writes-unchecked
uintr-msr-48 writes-unchecked
/x86_64/uintr/property uintr=off
/x86_64/uintr/no-msrs-without-cpuid present-though-off
/x86_64/uintr/migration moved-nothing
uintr-xsaves xsaves-keeps-uinv
uintr-deliver uif-kept
uintr-deliver testui-cc-op
uintr-notify no-eoi
uintr-notify halt-wakes
uintr-notify watch-loses
uintr-senduipi xapic-unshifted
uintr-senduipi-smp shift-32
/x86_64/uintr/counters on-ignored
FAULTS

echo "== what the reports show is mended here"
gcc -c -o "$scratch/reserved.o" uintr/qemu/reports/reserved.S
ld -Ttext 0x7c00 --oformat binary -o "$scratch/reserved.img" "$scratch/reserved.o"
timeout 300 "$qemu" -accel tcg -cpu max -display none -nic none -debugcon stdio -device isa-debug-exit,iobase=0x501 \
    -drive "format=raw,file=$scratch/reserved.img" >"$scratch/reserved" || true
printf 'CR4: #GP\nCR3: #GP\n' | cmp - "$scratch/reserved"
"${run[@]}" --items smp.code --cpu max,uintr=off

echo "== conformance: two CPUs, xAPIC"
"${run[@]}"
echo "== conformance: four CPUs, x2APIC, UIRET always opens"
"${run[@]}" --cpus 4 --x2apic --cpu max,uiret-uif=off
echo "== conformance: 48 bits of address, no XSAVES, one thread for all CPUs"
"${run[@]}" --cpu max,la57=off,xsaves=off --machine pc --thread single
echo "== saved in one process, gone on with in another"
"${run[@]}" --move
"${run[@]}" --move --x2apic --thread single
echo "== the cases of kvm-unit-tests"
"${run[@]}" --kut
! "${run[@]}" --kut --fault sn-ignored >"$scratch/kut"
grep '^not ok .* kut.sn' "$scratch/kut"
echo "== each instruction translated by itself"
"${run[@]}" --one-insn-per-tb
echo "== instructions as the clock, and a record that is replayed"
"${run[@]}" --deterministic
"${run[@]}" --replay
! "${run[@]}" --replay --items deliver.stack-absent --fault replay-unnoted >"$scratch/replayed"
grep '^not ok - the replay diverged' "$scratch/replayed"
echo "== TESTUI under a fast timer"
"${run[@]}" --items none --deterministic --testuis 300000
! "${run[@]}" --items none --deterministic --testuis 10000 --fault testui-cc-op >"$scratch/hammered"
grep '^not ok .* hammer.testui' "$scratch/hammered"
echo "== a CPU without user interrupts"
"${run[@]}" --cpu max,uintr=off

echo "== every SENDUIPI accounted for"
"${run[@]}" --items none --sends 300000 --cpus 3

echo "== a debugger that watches the UPID takes no notification away"
"${run[@]}" --items none --sends 300 --watch
! "${run[@]}" --items none --sends 300 --watch --fault watch-loses >"$scratch/watched"
grep '^not ok .* accounting' "$scratch/watched"

echo "== code that is changed while another CPU runs it, however late the store"
"${run[@]}" --items smp.code --fault stored-late

echo "== planted faults"
uintr/qemu/conformance/faults --qemu "$qemu"

echo "== the model follows the emulator"
follow() {
    "${run[@]}" --items none --trace "$scratch/trace" "$@" >"$scratch/steps"
    DOORBELL_UINTR_TRACE=$scratch/trace cargo test -q --workspace --all-features --test emulator \
        given_by_the_environment -- --ignored --nocapture | grep 'without a difference'
}
follow --steps 100000 --cpus 4 --thread single --seed 11
follow --steps 10000 --cpus 2 --thread multi --seed 12 --x2apic
follow --steps 20000 --cpus 4 --thread single --seed 13 --one-insn-per-tb

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every kernel that guests can have boots, runs this program, and loads a module built with the headers fetched for it.
# Inputs: uintr/qemu/build uintr/qemu/patches crate:doorbell-vm lab/command/src/cli/vm.rs
# Inputs: lab/command/src/cli/vm
# Long: four kernels boot.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/qemu.sh
ci/install/vm.sh
scratch

doorbell=$(ci/built)
qemu=$(uintr/qemu/build)
cat >"$scratch/loaded.c" <<'C'
#include <linux/module.h>
static int __init begin(void) { pr_info("%s was loaded\n", THIS_MODULE->name); return 0; }
static void __exit end(void) { }
module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Says that it was loaded");
C
boots() {
    local kernel=$1 built=$scratch/$1 series=${1%-rt}
    mkdir "$built"
    "$doorbell" vm build --kernel "$kernel" --accel uintr --headers >"$built.built" || fail "$kernel is not built"
    cp "$scratch/loaded.c" "$built"
    echo 'obj-m := loaded.o' >"$built/Kbuild"
    make -C "$(sed -n 's/^headers *//p' "$built.built")" "M=$built" modules >"$built/log" 2>&1 || fail "$(cat "$built/log")"
    "$doorbell" vm shell --kernel "$kernel" --qemu "$qemu" --accel uintr --cpus 2 --timeout 30m --carry "$built/loaded.ko" -c "
        insmod $built/loaded.ko && uname -rv && dmesg | grep 'loaded was loaded' && doorbell ping futex --count 100 --blocks 1 -o - >/dev/null" >"$built/said" 2>&1 || fail "$(cat "$built/said")"
    grep -q "^${series//./\\.}\." "$built/said" || fail "that is not $kernel: $(cat "$built/said")"
    [ "$kernel" = "$series" ] || grep -q PREEMPT_RT "$built/said" || fail "no PREEMPT_RT: $(cat "$built/said")"
    ! grep -q "kernel complained" "$built/said" || fail "$(cat "$built/said")"
    echo "64-kernels: $(grep "^$series" "$built/said")"
}
# Two beside each other, for a boot keeps one CPU busy; with time enough where others use the CPUs too.
for pair in "6.1 6.12" "7.3 7.3-rt"; do
    pids=()
    for kernel in $pair; do
        boots "$kernel" &
        pids+=($!)
    done
    failed=0
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    pids=()
    [ "$failed" = 0 ] || exit 1
done

status=0
"$doorbell" vm shell --kernel 7.3-rt --qemu "$qemu" --nvme poll -c true 2>"$scratch/said" || status=$?
[ "$status" = 2 ] && grep -q "as a module" "$scratch/said" || fail "an NVMe device without a driver: $(cat "$scratch/said")"

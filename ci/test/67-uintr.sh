#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver for user interrupts in guests, on stock kernels: it refuses where it must, keeps what it promises for ordinary users'
# threads, and goes without a trace. Judged by counts, never by time.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "67-uintr: $*" >&2; exit 1; }
step() { echo "== $*"; }
says() { grep -qF -- "$1" "$scratch/said" || fail "'$1' is not in: $(cat "$scratch/said")"; }

cargo build --quiet --package doorbell-lab
doorbell="${CARGO_TARGET_DIR:-target}/debug/doorbell"
emulator=$(qemu/build)

# guest ACCEL KERNEL CPUS SCRIPT : runs it in a guest where $built holds the driver; its output goes to $scratch/said.
guest() {
    built=$(kernel/uintr/build --kernel "$2")
    "$doorbell" vm shell --accel "$1" --kernel "$2" --qemu "$emulator" --cpus "$3" --timeout 30m --carry "$built" -c "
        built=$built
        fail() { echo \"FAILED: \$*\"; dmesg | tail -20; exit 1; }
        $4
        # A CPU that stood still is the host's doing; these are the driver's.
        if dmesg | grep -E 'WARNING:|Oops|BUG: (kernel|unable|scheduling|sleeping|workqueue)'; then fail 'the kernel complained'; fi
        " >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
}

step "a CPU without user interrupts is refused, with the reason"
guest tcg 6.12 1 'if insmod $built/uintr.ko; then fail "it was loaded"; fi; dmesg | grep uintr:'
says "this CPU has no user interrupts"

for kernel in 6.12 7.3; do
    step "$kernel: every promise, for an ordinary user; two programs that wake each other; it goes without a trace"
    guest uintr $kernel 2 '
        insmod $built/uintr.ko || fail "not loaded"
        $built/lives --as 1000 || fail "lives"
        $built/ping /tmp/socket 5 & $built/pong /tmp/socket || fail "pong"
        wait $! || fail "ping"
        tries=0
        until rmmod uintr 2>/dev/null; do
            tries=$((tries + 1)); [ $tries -lt 600 ] || fail "$(cat /sys/module/uintr/refcnt) references are left"
            usleep 100000
        done
        insmod $built/uintr.ko || fail "not a second time"
        rmmod uintr || fail "not unloaded a second time"
    '
    says "times there and back"
    ! grep '^not ok' "$scratch/said" || fail "$(cat "$scratch/said")"
done
echo "67-uintr: what was sent was heard, and nothing was left"

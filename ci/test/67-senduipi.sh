#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The measuring aid for SENDUIPI in a guest: every notification is accounted for, the module refuses where it must, and nothing of
# a thread is left in CPU or kernel however the thread ends. Judged by counts, never by time.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "67-senduipi: $*" >&2; exit 1; }
step() { echo "== $*"; }
says() { grep -qF -- "$1" "$scratch/said" || fail "'$1' is not in: $(cat "$scratch/said")"; }

doorbell=$(ci/built)
built=$(ci/senduipi-guest --build)
kernel=$("$doorbell" vm build | sed -n 's/^kernel *//p')
# Debian's own module that shows MSRs: a witness that is not ours.
witness=$(find "${kernel%/boot/*}/lib/modules" -name msr.ko)

# guest ACCEL SCRIPT : runs it in a guest; its output goes to $scratch/said.
guest() {
    "$doorbell" vm shell --accel "$1" --qemu "$(qemu/build)" --cpus 2 --carry "$built" --carry "$witness" -c "
        built=$built witness=$witness
        fail() { echo \"FAILED: \$*\"; dmesg | tail -20; exit 1; }
        held() { cat /sys/module/senduipi/parameters/\$1; }
        $2
        # A CPU that stood still is the host's doing; these are the module's.
        if dmesg | grep -E 'WARNING:|Oops|BUG: (kernel|unable|scheduling)'; then fail 'the kernel complained'; fi
        " >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
}

step "eight arms, every notification accounted for"
ci/senduipi-guest --rounds 2 --count 50 >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
says "800 notifications sent, 800 seen, in 8 arms of 2 rounds"

step "what does not add up is told"
awk 'BEGIN { print "clock 1000 ticks 1000 ns"; print "block 0 blocked-senduipi sent 2 seen 1 calls 2 slept 1 ticks 5 6" }' |
    kernel/senduipi/figures >"$scratch/said" 2>&1 && fail "a lost notification passed"
says "2 sent, 1 seen, 2 timed"
says "slept 1 times for 2 notifications"

step "a CPU without user interrupts is refused, with the reason"
guest tcg 'if insmod $built/senduipi.ko; then fail "it was loaded"; fi; dmesg | grep senduipi:'
says "this CPU has no user interrupts"

step "nothing is left by any end of a thread, by kill -9, by a CPU that goes, by rmmod"
guest uintr '
insmod $witness
# The six MSRs of each CPU: eight bytes at the offset of its number.
clear() {
    for cpu in 0 1; do
        for msr in $((0x985)) $((0x986)) $((0x987)) $((0x988)) $((0x989)) $((0x98a)); do
            value=$(dd if=/dev/cpu/$cpu/msr bs=8 count=1 skip=$msr iflag=skip_bytes 2>/dev/null | od -An -tx8 | tr -d " ")
            [ "$value" = 0000000000000000 ] || fail "$1: CPU $cpu, MSR $msr is $value"
        done
    done
}
gone() {
    n=0
    while [ $(held threads) != 0 ] || [ $(held receivers) != 0 ]; do
        n=$((n + 1)); [ $n -lt 3000 ] || fail "$1: $(held threads) threads, $(held receivers) receivers are left"
        usleep 10000
    done
    clear "$1"
}
insmod $built/senduipi.ko
$built/ends || fail "ends"
clear "all ends"
for arm in running-senduipi blocked-senduipi ping-pong-senduipi call-senduipi; do
    $built/wakeups --arm $arm --count 10000000 &
    until [ $(held threads) = 2 ]; do usleep 10000; done
    if rmmod senduipi 2>/dev/null; then fail "the module went while threads had a part"; fi
    usleep 300000
    kill -9 $!
    if wait $!; then fail "$arm ended well"; fi
    gone "$arm, killed"
    echo "killed: $arm"
done
$built/wakeups --arm blocked-senduipi --count 10000000 &
until [ $(held threads) = 2 ]; do usleep 10000; done
echo 0 >/sys/devices/system/cpu/cpu1/online
if wait $!; then fail "it outlived its CPU"; fi
echo 1 >/sys/devices/system/cpu/cpu1/online
gone "CPU 1 off-line and on"
$built/wakeups --rounds 1 --count 20 --arm blocked-senduipi >/dev/null || fail "not after CPU 1 came back"
rmmod senduipi
clear "rmmod"
# It refuses a CPU whose MSRs or CR4.UINTR somebody uses: that it loads again says that it left both clear.
insmod $built/senduipi.ko || fail "not a second time"
rmmod senduipi
echo "nothing is left"
'
says "ok - moved to another CPU"
! grep -q '^not ok' "$scratch/said" || fail "$(cat "$scratch/said")"
says "killed: call-senduipi"
says "nothing is left"
echo "67-senduipi: what was rung was heard, and nothing was left"

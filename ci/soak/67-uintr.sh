#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The long forms of ci/test/67-uintr.sh: ten million notifications on each kernel in each of three forms (nothing else ends a
# sleep; signals and time-outs too; with waits between the driver's steps), ten thousand deaths in traffic and as many ends beside
# a spawn, eleven million wrong calls, ten minutes of two programs that wake each other while load moves them about, kernels that check themselves, and what it
# all costs. Ten million at each of sixteen shapes of loops are some eight hours a kernel (5,800 a second, alone), the rest some more; each step is a guest of its own, and SOAK_STEPS="storm deaths" takes only those, SOAK_KERNELS=7.3 only that
# kernel's; SOAK_LOOPS=1 is how many runs of the loops there are, of half a million for each shape [20]; SOAK_SENDS=20000
# is how often the kernel itself sends in each form [a million].
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
scratch

wanted() { [[ " ${SOAK_STEPS:-lives debug storm kernel loops plug deaths fuzz pair costs} " == *" $1 "* ]]; }
guest() { ci/uintr-guest --timeout 120m "$@" 2>&1 | tee "$scratch/said" || fail "see above"; }

ci/built >/dev/null
for kernel in 6.12 7.3 7.3-rt 6.1; do
    ! wanted lives || { step "$kernel: every promise"; guest --kernel $kernel --cpus 4 '
        $built/lives && $built/lives --as 1000 || fail "lives"
        $built/conformance hardware && $built/conformance hardware --as 1000 && $built/rfc || fail "the suite"'; }
done
for checker in kasan kcsan; do
    ! wanted debug || { step "$checker: every promise, storms, deaths, wrong calls; then with every send counted"; guest --debug $checker --cpus 4 --define UINTR_DELAYS '
        $built/lives && $built/lives --as 1000 || fail "lives"
        $built/storm --count 100000 --burst 1 --receivers 8 --signals 0 --timeouts 0 || fail "storm"
        $built/storm --count 100000 --burst 200 || fail "storm"
        $built/loops --count 50000 || fail "loops"
        $built/deaths 1000 || fail "deaths"
        $built/fuzz 100000 || fail "fuzz"
        plug & plug=$!
        $built/loops --count 5000 || fail "loops while CPUs go off-line and come back"
        unplugged $plug
        unload
        load count_sends=1
        $built/lives || fail "lives, counted"
        $built/storm --count 50000 --burst 1 --receivers 8 || fail "storm, counted"'; }
done
# Of the kernel as sender: its timers and eventfds.
sends=${SOAK_SENDS:-1000000}
many="--count 2500000 --burst 1 --receivers 12 --senders 4"
for kernel in ${SOAK_KERNELS:-6.12 7.3}; do
    for seed in 1 2 3 4; do
        ! wanted storm || { step "$kernel: 2.5 million notifications, and nothing else ends a sleep, seed $seed"; guest --kernel $kernel --cpus 4 "\$built/storm $many --signals 0 --timeouts 0 --seed $seed || fail storm"; }
        ! wanted storm || { step "$kernel: the same with signals and time-outs"; guest --kernel $kernel --cpus 4 "\$built/storm $many --seed $seed || fail storm"; }
        ! wanted storm || { step "$kernel: the same with waits between any two steps"; guest --kernel $kernel --cpus 4 --define UINTR_DELAYS "\$built/storm $many --signals 0 --timeouts 0 --seed $seed || fail storm"; }
    done
    ! wanted storm || { step "$kernel: 2.5 million in bursts of up to 4000, most of which find a notification under way"; guest --kernel $kernel --cpus 4 '$built/storm --count 2500000 --burst 4000 || fail storm'; }
    ! wanted kernel || { step "$kernel: $sends expiries of a timer, as many written to eventfds in each form, as many turns of user-level threads"; guest --kernel $kernel --cpus 4 "
        for case in 'each expiry' 'an eventfd of one that only runs' 'an eventfd of one that only waits' 'three eventfds'; do
            \$built/conformance hardware --times $sends --only \"\$case\" || fail \"\$case\"
        done
        for i in 1 2; do while :; do :; done & load=\"\$load \$!\"; done
        \$built/turns 8 $sends || fail turns
        kill \$load"; }
    for seed in $(seq "${SOAK_LOOPS:-20}"); do
        ! wanted loops || { step "$kernel: half a million in loops of each of sixteen shapes, and nothing else ends a wait, seed $seed"; guest --kernel $kernel --cpus 4 "\$built/loops --each 500000 --seed $seed || fail loops"; }
    done
    ! wanted loops || { step "$kernel: the same with time-outs, bursts, and waits between any two steps"; guest --kernel $kernel --cpus 4 --define UINTR_DELAYS '$built/loops --count 500000 --burst 16 --timeouts 1 || fail loops'; }
    ! wanted plug || { step "$kernel: the storm while CPUs go off-line and come back"; guest --kernel $kernel --cpus 4 '
        plug & plug=$!
        $built/storm --count 100000 --burst 200 || fail "storm"
        $built/loops --count 100000 || fail "loops"
        unplugged $plug'; }
    for seed in 1 2 3 4 5; do
        ! wanted deaths || { step "$kernel: 2000 deaths, seed $seed"; guest --kernel $kernel --cpus 2 "\$built/deaths 2000 $seed || fail deaths"; }
    done
    ! wanted deaths || { step "$kernel: ten thousand receivers end while another thread spawns, and are sent to"; guest --kernel $kernel --cpus 2 '
        $built/conformance hardware --times 400000 --only "a child has yet to execute" || fail spawns'; }
    ! wanted fuzz || { step "$kernel: a million wrong calls"; guest --kernel $kernel --cpus 2 '$built/fuzz 1000000 || fail fuzz'; }
    [ $kernel = 6.12 ] || ! wanted fuzz || { step "$kernel: ten million wrong calls"; guest --kernel $kernel --cpus 2 '$built/fuzz 10000000 || fail fuzz'; }
    ! wanted pair || { step "$kernel: ten minutes there and back, of an ordinary user, under load"; guest --kernel $kernel --cpus 4 '
        for i in 1 2 3; do while :; do :; done & load="$load $!"; done
        pair 600
        kill $load'; }
    ! wanted costs || { step "$kernel: what a switch costs those that have no part"; ci/uintr-costs --kernel $kernel || fail "see above"; }
done
echo "soak 67-uintr: done"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver for user interrupts in guests, on stock kernels: it refuses where it must, keeps what it promises to ordinary users'
# threads, loses nothing under a storm, does only what the checked model allows, and goes without a trace. Judged by counts, never
# by time. ci/soak/67-uintr.sh has the long forms.
# Inputs: uintr/qemu/build uintr/qemu/patches crate:doorbell-vm lab/command/src/cli/vm.rs
# Inputs: lab/command/src/cli/vm uintr/driver crate:user-interrupts crate:doorbell-uintr
# Inputs: library/doorbell/tests/user_interrupts.rs lab/subjects/src/mechanism/user_interrupt.rs
# Long: six guests.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/qemu.sh
ci/install/vm.sh
scratch

says() { grep -qF -- "$1" "$scratch/said" || fail "'$1' is not in: $(cat "$scratch/said")"; }
guest() { ci/uintr-guest "$@" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"; }

doorbell=$(ci/built)

step "a CPU without user interrupts is refused, with the reason; the kit for others' machines says it and packs what it knows"
built=$(uintr/driver/build --kernel 6.12)
"$doorbell" vm shell --accel tcg --kernel 6.12 --carry "$built" -c "$built/kit --built $built --to /tmp; tar -tzf /tmp/uintr-*.tar.gz" >"$scratch/said" 2>&1 ||
    fail "$(cat "$scratch/said")"
says "this CPU has no user interrupts"
says "NOT OK  load"
says "1 steps failed. Send back /tmp/uintr-"
says "/load.txt"

step "page-table isolation is refused, and the parameter named"
"$doorbell" vm shell --accel uintr --qemu "$(uintr/qemu/build 2>/dev/null)" --kernel 6.12 --kernel-parameter pti=on --carry "$built" \
    -c "insmod $built/uintr.ko || dmesg | grep uintr:" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
says "boot with the parameter nopti"

step "6.12: the kit: every promise, the suite of programs, and all else, short; two programs of an ordinary user that wake each other"
guest --kernel 6.12 '
    until rmmod uintr 2>/dev/null; do usleep 100000; done
    $built/kit --length short --built $built --to /tmp || bad=yes
    tar -xzf /tmp/uintr-*.tar.gz -C /tmp
    [ -z "$bad" ] || { grep -v "^ok" /tmp/uintr-*/*.txt | tail -60; fail "kit"; }
    cat /tmp/uintr-*/promises.txt /tmp/uintr-*/suite.txt /tmp/uintr-*/deaths.txt
    load
    pair 2
    beside 200
    $built/turns 5 2000 || fail turns
'
says "turns, all registers kept (hardware: "
says "200 knocks answered (hardware: "
says "200 knocks, 13 messages"
says "times there and back (hardware: "
says "104 deaths, and the survivor was told of each"
for step in promises promises-as-a-user suite suite-as-a-user rfc suite-by-signals rfc-by-signals storm loops wrong-calls epoll-loop wakeups unload kernel-is-silent; do
    says "ok      $step ("
done
! grep -E '^not ok|^NOT OK' "$scratch/said" || fail "$(cat "$scratch/said")"

step "the very files that ran in the guest, here, where no driver is loaded"
if [ ! -e /dev/uintr ]; then
    "$built/loop" "$scratch/door" 3600 >"$scratch/loop" &
    loop=$!
    "$built/knock" "$scratch/door" 200 >"$scratch/said" || fail "knock"
    wait $loop || fail "loop"
    says "200 knocks answered (signals: emulated"
fi

step "6.12: the driver that vm loads: the Rust crate's promises; bells whose waiters are woken by SENDUIPI; user interrupts beside a futex, none lost"
"$doorbell" vm build --accel uintr --kernel 6.12 --driver >/dev/null 2>&1
cargo test --quiet --locked --workspace --all-features --test user_interrupts --test promises --no-run --message-format json | python3 -c '
import json, sys
for each in map(json.loads, sys.stdin):
    if each.get("executable") and each["target"]["name"] in ["user_interrupts", "promises"]:
        print(each["executable"], each["target"]["name"])' | while read -r program name; do objcopy --strip-debug "$program" "$scratch/$name"; done
objcopy --strip-debug "$(dirname "$doorbell")/examples/turns" "$scratch/turns"
"$doorbell" vm shell --accel uintr --kernel 6.12 --driver --cpus 2 --carry "$scratch/promises" --carry "$scratch/user_interrupts" --carry "$scratch/turns" \
    -c "$scratch/promises && $scratch/user_interrupts --test-threads 1 --nocapture && $scratch/turns 5 2000" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
says "hardware: the CPU's own"
says "turns, all registers kept (hardware: "
says "test result: ok. 7 passed"
"$doorbell" vm run --accel uintr --kernel 6.12 --cpus 2 -- uintr futex uintr uintr-wait uintr-epoll --gap 0,1ms --size 1 --wait 5ms --count 50 --blocks 1 \
    -o "$scratch/beside.json" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
"$doorbell" export csv "$scratch/beside.json" | python3 -c '
import collections, csv, sys
tally = collections.defaultdict(float)
for row in csv.DictReader(sys.stdin):
    if row["quantity"] == "tally":
        tally[row["mechanism"], row["statistic"]] += float(row["value"])
for mechanism in ["futex", "uintr", "uintr-wait", "uintr-epoll"]:
    counts = {name: int(tally[mechanism, name]) for name in ["sent", "seen", "lost"]}
    print(mechanism, counts)
    assert counts["seen"] > 0 and counts["lost"] == 0
    assert mechanism == "uintr" or tally[mechanism, "proven_asleep"] > 0
'
"$doorbell" vm run --accel uintr --kernel 6.12 --driver --cpus 2 -- anatomy uintr uintr-wait uintr-epoll --gap 1ms --count 50 --blocks 1 --placement same-l3 \
    -o "$scratch/stages.json" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
python3 - "$scratch/stages.json" <<'END' || fail "no stages: $(cat "$scratch/said")"
import json, sys
seen = {}
for record in json.load(open(sys.argv[1]))["records"]:
    anatomy = record.get("anatomy")
    if anatomy:
        marks = {mark for path in anatomy["paths"] for mark in path["marks"]}
        seen[record["configuration"]["subject"]] = anatomy["counts"]["cut"], "scheduled-in" in marks
        print(record["configuration"]["subject"], anatomy["counts"], sorted(marks))
assert set(seen) == {"uintr", "uintr-wait", "uintr-epoll"}, seen
assert all(cut > 0 for cut, _ in seen.values()), seen
# Who sleeps is seen to come to its CPU.
assert seen["uintr-wait"][1] and seen["uintr-epoll"][1], seen
END

"$doorbell" vm run --accel uintr --kernel 6.12 --driver --cpus 2 -- switch preempt-uintr-timer --contexts threads --placement same-core --count 200 \
    -o "$scratch/preempted.json" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
python3 - "$scratch/preempted.json" <<'END' || fail "not preempted: $(cat "$scratch/said")"
import json, sys
records = json.load(open(sys.argv[1]))["records"]
assert records and all(record["outcome"]["kind"] == "done" for record in records), records
assert all(record["series"][series]["count"] == 200 for record in records for series in ["response", "operation"]), records
END

step "6.12: a wake-up that is forgotten is found; a driver in use stays; a user has no more receivers than allowed; a CPU that stays after all, or that another kernel left, is not refused"
guest --kernel 6.12 --define UINTR_FORGETS --define UINTR_LEAVES_MSRS '
    $built/storm --signals 0 --timeouts 0 --lost-after 10 >&2 && fail "it was not found"
    $built/loops --lost-after 10 >&2 && fail "it was not found in loops"
    echo 2 >/sys/module/uintr/parameters/receivers_per_user
    $built/storm --receivers 3 2>&1 | tee /tmp/refused >&2
    grep -q "UINTR_RECEIVE: Resource temporarily unavailable" /tmp/refused || fail "three receivers"
    # What the storms used last is given back behind a grace period: that is not the use meant.
    until [ $(cat /sys/module/uintr/refcnt) -eq 0 ]; do usleep 10000; done
    $built/ping /tmp/socket 1 & ping=$!
    until [ $(cat /sys/module/uintr/refcnt) -gt 0 ]; do usleep 10000; done
    rmmod uintr 2>/dev/null && fail "unloaded in use"
    kill $ping
    plug=/sys/devices/system/cpu
    sed -n "s/^ *\([0-9]*\): workqueue:online/\1/p" $plug/hotplug/states >$plug/cpu1/hotplug/fail || fail "no such state"
    echo 0 >$plug/cpu1/online && fail "it went"
    dmesg | grep "user interrupts already" && fail "its return was refused"
    wait $ping
    unload
    load
    dmesg | grep "was left by a kernel before this one" >&2 || fail "nothing was left"
    $built/storm --count 1 >&2 || fail "behind what was left"
'
says "MSR 988 was left by a kernel before this one"
says "LOST: receiver"
says "loops: LOST: "

for kernel in 6.12 7.3; do
    step "$kernel: nothing else than the checked model allows"
    guest --kernel $kernel '
        mount -t tracefs tracefs /sys/kernel/tracing
        echo 60000 >/sys/kernel/tracing/buffer_size_kb
        echo 1 >/sys/kernel/tracing/events/uintr/enable
        $built/storm --count 4000 --receivers 2 --senders 1 --lanes 2 --burst 8 >&2 || fail "storm"
        $built/loops --count 1000 --senders 2 --burst 2 --timeouts 1 >&2 || fail "loops"
        echo 0 >/sys/kernel/tracing/tracing_on
        cat /sys/kernel/tracing/trace
    '
    says "none lost"
    "$(dirname "$doorbell")/examples/replay" "$scratch/said" >"$scratch/replayed" 2>&1 || fail "$(cat "$scratch/replayed")"
    cat "$scratch/replayed"
    # The third is that of a loop whose thread has a handler too.
    grep -q "steps of 3 receivers, all allowed" "$scratch/replayed" || fail "$(cat "$scratch/replayed")"
    grep -q "steps of 16 receivers without a handler, all allowed" "$scratch/replayed" || fail "$(cat "$scratch/replayed")"
done

step "7.3: every promise, storms with waits between any two steps of the driver, CPUs that come and go, wrong calls; the same with every send counted"
guest --kernel 7.3 --cpus 4 --define UINTR_DELAYS '
    $built/lives --as 1000 || fail "lives"
    $built/storm --count 20000 --burst 200 || fail "storm"
    $built/storm --count 5000 --burst 1 --receivers 8 --signals 0 --timeouts 0 || fail "storm in which nothing else ends a sleep"
    $built/loops --count 3000 || fail "loops"
    $built/loops --count 3000 --burst 8 --timeouts 1 || fail "loops with time-outs"
    plug & plug=$!
    $built/storm --count 5000 --burst 200 || fail "storm while CPUs go off-line and come back"
    $built/loops --count 1000 || fail "loops while CPUs go off-line and come back"
    $built/turns 6 5000 || fail "turns while CPUs go off-line and come back"
    unplugged $plug
    $built/fuzz 5000 || fail "fuzz"
    unload
    load count_sends=1
    $built/lives || fail "lives, counted"
    $built/storm --count 5000 --burst 200 || fail "storm, counted"
    $built/storm --count 5000 --burst 1 --receivers 8 --signals 0 --timeouts 0 || fail "storm in which nothing else ends a sleep, counted"
    $built/loops --count 1000 --burst 4 || fail "loops, counted"
'
! grep '^not ok' "$scratch/said" || fail "$(cat "$scratch/said")"
[ "$(grep -c "none lost$" "$scratch/said")" = 5 ] && [ "$(grep -c "none lost, in 16 shapes" "$scratch/said")" = 4 ] || fail "$(cat "$scratch/said")"
for case in "a flood leaves the CPU its tick" "a flood of sleepers leaves the CPU its tick" "waiting in a time namespace" "who is frozen sleeps on" "a core is dumped to its end" "io_uring_enter(2) ends with EINTR" \
    "io_uring polls for good"; do
    grep -qx "ok [0-9]* - $case" "$scratch/said" || fail "'$case' was not tried"
done
says " suppressed "
says "the bystander heard nothing"
step "eight variants of wake-ups, every notification accounted for; what does not add up is told"
ci/wakeups-guest --rounds 2 --count 50 >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
says "800 notifications sent, 800 seen, in 8 variants of 2 rounds"
awk 'BEGIN { print "clock 1000 ticks 1000 ns"; print "block 0 blocked-senduipi sent 2 seen 1 calls 2 slept 1 woken 1 ticks 5 6" }' |
    uintr/driver/measure/figures >"$scratch/said" 2>&1 && fail "a lost notification passed"
says "2 sent, 1 seen, 2 timed"
says "slept 1 times for 2 notifications"
says "the driver woke it 1 times"

echo "67-uintr: what was sent was heard, and nothing was left"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Guests: the lab runs in emulated machines of several shapes, with user interrupts and without, and every way a guest can
# die is told and leaves nothing behind. Judged by counts and states, never by time.
# Inputs: uintr/qemu/build uintr/qemu/patches crate:doorbell-vm lab/command/src/cli/vm.rs
# Inputs: lab/command/src/cli/vm lab/verdict/src/gate.rs
# Long: a dozen guests.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/qemu.sh
ci/install/vm.sh
scratch=$(mktemp -d)
command=
leave() {
    [ -z "$command" ] || kill -KILL "$command" 2>/dev/null || true
    rm -rf "$scratch"
}
trap leave EXIT
export XDG_STATE_HOME=$scratch/state


doorbell=$(ci/built)
qemu=$(uintr/qemu/build)

# vm VERB ARGUMENT... : the emulator of uintr/qemu/ for every accelerator, so that no installed one is needed.
vm() {
    local verb=$1
    shift
    "$doorbell" vm "$verb" --qemu "$qemu" "$@"
}
# json FILE EXPRESSION : a statement about a result, in Python, with the document as `r`.
json() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$1" "$2"; }
holds() { json "$1" "$2" || fail "not so in $(basename "$1"): $2"; }
# ends STATUS COMMAND... : its output goes to $scratch/said.
ends() {
    local wanted=$1 status=0
    shift
    "$@" >"$scratch/said" 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status instead of $wanted: $* says $(cat "$scratch/said")"
}
says() { grep -qF -- "$1" "$scratch/said" || fail "'$1' is not in: $(cat "$scratch/said")"; }

step "what a guest is made of"
"$doorbell" vm build --accel uintr

step "a CPU with user interrupts, and the same one without"
vm run --accel uintr --cpus 2 -- doctor --json >"$scratch/uintr.json"
holds "$scratch/uintr.json" "r['virtualisation']['emulated'] and r['virtualisation']['vm']['accelerator'] == 'uintr'"
holds "$scratch/uintr.json" "r['processor']['user_interrupts'] is True"
holds "$scratch/uintr.json" "'this kernel gives them to no program' in [f['seen'] for f in r['findings'] if f['name'] == 'user-interrupts'][0]"
vm run --accel tcg --cpus 2 -- doctor --json >"$scratch/tcg.json"
holds "$scratch/tcg.json" "r['virtualisation']['vm']['accelerator'] == 'tcg' and r['processor']['user_interrupts'] is False"

step "two nodes of two cores: a result comes home, complete"
vm run --accel uintr --cpus 4 --numa 2 -- ping futex eventfd --gap 0 --count 300 --blocks 2 \
    --placement same-l3,other-node -o "$scratch/ping.json" >"$scratch/said"
says "emulated: every time here is an emulator's"
holds "$scratch/ping.json" "all(t['outcome']['kind'] == 'done' for t in r['records'])"
holds "$scratch/ping.json" "all(t['tally']['seen'] == t['tally']['sent'] > 0 and t['tally']['lost'] == 0 for t in r['records'])"
holds "$scratch/ping.json" "{c['placement']['relation']: c['placement']['cpus'] for c in r['plan']['configurations']}['other-node'][1] >= 2"
holds "$scratch/ping.json" "any(w['name'] == 'emulated' for w in r['warnings'])"
ends 1 "$doorbell" compare lab/command/tests/data/ping.json "$scratch/ping.json"
says "one was measured in an emulator and the other was not"

step "a guest that its host starves: every wake-up that was due in a freeze is seen to be late, and no gate lets it through"
# Not through `vm`, so that the emulator is this very process's child.
"$doorbell" vm run --qemu "$qemu" --accel tcg --cpus 2 -- gate --max 50ms --time 6s --blocks 3 --anyway \
    -o "$scratch/starved.json" >"$scratch/said" 2>&1 &
command=$!
freezes=0
# It is stopped while it boots too, which only takes longer then.
while kill -0 "$command" 2>/dev/null && [ "$freezes" -lt 600 ]; do
    emulator=$(pgrep -P "$command" || true)
    [ -z "$emulator" ] || kill -STOP $emulator 2>/dev/null || true
    sleep 0.3
    [ -z "$emulator" ] || kill -CONT $emulator 2>/dev/null || true
    sleep 0.7
    freezes=$((freezes + 1))
done
status=0
wait "$command" || status=$?
command=
[ "$status" -eq 4 ] || fail "status $status instead of 4: $(cat "$scratch/said")"
says "INCONCLUSIVE"
holds "$scratch/starved.json" "r['verdict']['status'] == 'inconclusive' and len(r['records']) == 6"
holds "$scratch/starved.json" "max(t['series']['response']['max_ns'] for t in r['records']) > 250e6"
holds "$scratch/starved.json" "all(t['tally']['sent'] == t['tally']['seen'] == t['series']['response']['count'] for t in r['records'])"
holds "$scratch/starved.json" "all(t['series']['response']['count'] * 1e6 > 0.9 * t['configuration']['until']['time_ns'] for t in r['records'])"

step "NVMe with polled queues, and with interrupts only"
look='ls /sys/block; cat /sys/block/nvme0n1/queue/io_poll; dmesg | grep -o "[0-9]*/[0-9]*/[0-9]* default/read/poll"'
ends 0 vm shell --nvme poll --cpus 2 -c "$look"
says "/2 default/read/poll"
ends 0 vm shell --nvme irq --cpus 2 -c "$look"
says "/0 default/read/poll"

step "a command's own status"
ends 7 vm shell --cpus 1 -c 'echo to the error stream >&2; exit 7'
says "to the error stream"

step "a shell for people, on a terminal that is as it was before afterwards"
python3 - "$doorbell" vm shell --qemu "$qemu" --cpus 1 <<'PYTHON' || fail "the shell on a terminal"
import fcntl, os, pty, select, sys, termios, time
ours, theirs = pty.openpty()
before = termios.tcgetattr(theirs)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    for standard in (0, 1, 2):
        os.dup2(theirs, standard)
    os.execv(sys.argv[1], sys.argv[1:])
heard = b""

def until(word):
    global heard
    deadline = time.monotonic() + 300
    while word not in heard:
        assert time.monotonic() < deadline, heard
        if select.select([ours], [], [], 1)[0]:
            heard += os.read(ours, 4096)

# The shell reads its line key by key, and gives the terminal back before it carries the line out.
until(b"# ")
# Whoever says this is in the foreground already. Sent as soon as the shell itself had announced cat, the interrupt once came before
# cat was: the shell took it, and cat read on.
os.write(ours, b"sh -c 'echo cat $((20 + 22)); exec cat'\n")
until(b"cat 42")
heard = b""
os.write(ours, b"\x03")  # ends cat in the guest, not the guest
until(b"# ")
os.write(ours, b"echo sum $((20 + 22))\n")
until(b"sum 42")
os.write(ours, b"exit 3\n")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 3, status
assert termios.tcgetattr(theirs) == before
PYTHON

step "a panic, a time-out, an interrupt: told, and nothing is left"
ends 1 vm shell --cpus 2 -c 'echo c >/proc/sysrq-trigger'
says "the guest's kernel panicked"
says "sysrq triggered crash"
# A busy host may need more than the first of these for the boot alone.
for limit in 30 240 900; do
    ends 1 vm shell --cpus 2 --timeout "${limit}s" -c 'echo before; sleep 1000'
    ! grep -q '^before' "$scratch/said" || break
done
says "before"
says "did not end within $limit s"
# Interrupted once the guest is up; how long the verb then needs for a first trial depends on the host.
for pause in 2 10 50 250; do
    # What the last guest said must be gone before this one is looked for: the redirection below is made by the new process.
    : >"$scratch/said"
    # Not through a function: the signal is for the command itself, not for a subshell.
    "$doorbell" vm run --qemu "$qemu" --cpus 2 -- ping futex --gap 0 --count 100 --blocks 10000 --placement same-core \
        -o "$scratch/part.json" >"$scratch/said" 2>&1 &
    command=$!
    until grep -q 'the guest is up' "$scratch/said"; do
        sleep 0.2
        kill -0 "$command" || fail "$(cat "$scratch/said")"
    done
    child=$(pgrep -P "$command") || fail "the guest is gone: $(cat "$scratch/said")"
    sleep "$pause"
    kill -INT "$command"
    status=0
    wait "$command" || status=$?
    command=
    [ "$status" -eq 130 ] || fail "an interrupted guest gave $status: $(cat "$scratch/said")"
    [ ! -e "/proc/$child" ] || fail "the emulator outlived the interrupt"
    [ ! -e "$scratch/part.json" ] || json "$scratch/part.json" "r['records'] == []" || break
done
holds "$scratch/part.json" "r['partial'] and 0 < len(r['records']) < 10000"

step "instructions as the clock: the same run twice, whatever the host does"
# counts FILE : what the run counted, in order; nothing of the host's is in it.
counts() {
    python3 - "$1" <<'PYTHON'
import json, sys
for record in json.load(open(sys.argv[1]))["records"]:
    sides = [[side["voluntary_switches"], side["involuntary_switches"]] for side in record["sides"]]
    series = {name: [series["count"], series["p50_ns"], series["max_ns"]] for name, series in sorted(record["series"].items())}
    print(record["configuration"]["subject"], record["tally"], sides, series)
PYTHON
}
for turn in 1 2; do
    vm run --deterministic --cpus 2 -- ping futex --gap 0 --time 50ms --blocks 1 --seed 1 \
        -o "$scratch/turn.json" >/dev/null
    counts "$scratch/turn.json" >"$scratch/turn-$turn"
    rm "$scratch/turn.json"
done
grep -q "'lost': 0" "$scratch/turn-1" || fail "a deterministic run measured nothing: $(cat "$scratch/turn-1")"
diff "$scratch/turn-1" "$scratch/turn-2" || fail "two runs of the same instructions differ"

step "a stressed kernel complains of nothing, and would be heard"
ends 0 vm shell --cpus 1 -c 'echo "<1>watchdog: BUG: soft lockup - a planted one" >/dev/kmsg'
says "the guest's kernel complained"
says "a planted one"
ci/stress-guest --seconds 10 --doorbell "$doorbell" --qemu "$qemu" --accel uintr

step "KVM: a guest, or the reason why not"
status=0
vm run --accel kvm --cpus 2 -- doctor --brief >"$scratch/said" 2>&1 || status=$?
grep -qE 'the guest is up|KVM is not available here, because|/dev/kvm cannot be opened' "$scratch/said" ||
    fail "neither a guest nor a reason (status $status): $(cat "$scratch/said")"
if grep -q 'the guest is up' "$scratch/said"; then
    [ "$status" -eq 0 ] || fail "status $status: $(cat "$scratch/said")"
else
    ci/skipped "65-vm: $(grep -m1 -E 'KVM is not available|/dev/kvm' "$scratch/said")"
fi
echo "65-vm: all guests did what was asked of them"

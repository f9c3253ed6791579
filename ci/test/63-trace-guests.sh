#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# `doorbell trace` on other kernels than this machine's: in a guest of each, both engines that need the kernel record programs whose
# wake graph is known and of which that kernel counts the sleeps. Judged by counts, never by time.
# Inputs: crate:doorbell-vm lab/command/src/cli/vm.rs lab/command/src/cli/vm lab/command/src/cli/trace.rs
# Inputs: lab/command/src/cli/trace lab/harness/src/trace lab/results/src/anatomy lab/verdict/src/what_if
# Long: three kernels boot.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/debian qemu-system-x86
ci/install/vm.sh
scratch
doorbell=$(ci/built --release)
cat >"$scratch/planted.rs" <<'RUST'
//! A waker and a waiter: `planted futex|pipe|tcp`. Says how often the waiter slept, by the kernel's count.
use std::{io::{Read, Write}, net::{TcpListener, TcpStream}};
use std::sync::{Condvar, Mutex, atomic::{AtomicUsize, Ordering::SeqCst}};
use std::{thread::{Builder, sleep}, time::Duration};
const ROUNDS: usize = 500;
static COUNT: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());
static TAKEN: AtomicUsize = AtomicUsize::new(0);
fn slept() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:\t")).unwrap().parse().unwrap()
}
fn play(mut wait: impl FnMut() -> usize + Send + 'static, mut notify: impl FnMut() + Send + 'static) {
    let waiter = Builder::new().name("waiter".into()).spawn(move || {
        let (before, mut seen) = (slept(), 0);
        while seen < ROUNDS {
            seen += wait();
            TAKEN.store(seen, SeqCst);
        }
        println!("{}", slept() - before);
    });
    let waker = Builder::new().name("waker".into()).spawn(move || {
        for round in 0..ROUNDS {
            // So each finds the waiter asleep, or nearly so.
            while { sleep(Duration::from_millis(1)); TAKEN.load(SeqCst) < round } {}
            notify();
        }
    });
    [waiter, waker].into_iter().for_each(|thread| thread.unwrap().join().unwrap());
}
fn stream((mut from, mut to): (impl Read + Send + 'static, impl Write + Send + 'static)) {
    play(move || from.read(&mut [0; 64]).unwrap(), move || to.write_all(&[1]).unwrap());
}
fn main() {
    let all = || std::mem::take(&mut *COUNT.1.wait_while(COUNT.0.lock().unwrap(), |count| *count == 0).unwrap());
    let one_more = || { *COUNT.0.lock().unwrap() += 1; COUNT.1.notify_one(); };
    match std::env::args().nth(1).unwrap().as_str() {
        "futex" => play(all, one_more),
        "pipe" => stream(std::io::pipe().unwrap()),
        _ => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            to.set_nodelay(true).unwrap();
            stream((listener.accept().unwrap().0, to));
        }
    }
}
RUST
rustc --edition 2024 -O -C target-feature=+crt-static "$scratch/planted.rs" -o "$scratch/planted"
# In the guest: what it has, each program by each engine, and what a killed recorder leaves. Results go out on standard output.
cat >"$scratch/guest.sh" <<'GUEST'
uname -r
[ -e /sys/kernel/btf/vmlinux ] && [ -e /proc/sys/kernel/unprivileged_bpf_disabled ] && engines=bpf
grep -qw tracefs /proc/filesystems && engines="$engines tracefs"
echo "engines $engines"
for engine in $engines; do
    for kind in futex pipe tcp; do
        doorbell trace --quiet --engine $engine -o $engine-$kind -- ./planted $kind >counted
        echo "trial $engine $kind $? $(grep -x '[0-9]*' counted)"
        echo "$(tr -d '\n' <$engine-$kind)"
    done
    # Processes that are made at once, on CPUs that are taken from them meanwhile.
    doorbell trace --quiet --children --engine $engine -o born -- sh -c '
        for shell in 1 2 3 4 5 6; do for i in $(seq 100); do /bin/busybox true; done & done; wait' >/dev/null
    echo "born $engine $(tr -d '\n' <born)"
done
mount -t tracefs nodev /sys/kernel/tracing
of_bpf() { grep '_doorbell.*\[bpf\]' /proc/kallsyms; }
of_tracefs() { ls /sys/kernel/tracing/instances | grep '^doorbell-'; }
for engine in $engines; do
    doorbell trace --quiet --engine $engine -p 1 --time 30m >/dev/null &
    until of_$engine >/dev/null; do sleep 1; kill -0 $! || exit 1; done
    kill -KILL $!; wait $!
    doorbell trace --quiet --engine $engine -- true >/dev/null
    # The kernel lets go of a program some time after its last user.
    for attempt in $(seq 60); do of_$engine >/dev/null || break; sleep 1; done
    echo "left $engine $(of_$engine | wc -l)"
done
GUEST

cat >"$scratch/check.py" <<'PYTHON'
import json, subprocess, sys
_, said, doorbell = sys.argv
kernel, has, *lines = open(said).read().splitlines()
trials = {tuple(head.split()[1:3]): (head, body) for head, body in zip(lines, lines[1:]) if head.startswith("trial ")}
WAITS = {"futex": ("futex", "futex", None), "pipe": ("read", "pipe", None), "tcp": ("read", "socket", "tcp")}
def right(edge, kind):
    how, on = edge["mechanism"], edge["mechanism"]["object"].get("file", edge["mechanism"]["object"])
    who = edge["waker"].get("name"), edge["waker"]["kind"], edge["waiter"], how["by"]["kind"]
    what = how["wait"]["kind"], on["kind"], on.get("family")
    return (who, what) == (("waker", "thread", "waiter", "call"), WAITS[kind])
for engine in has.split()[1:]:
    for kind in WAITS:
        head, body = trials[engine, kind]
        assert head.startswith(f"trial {engine} {kind} 0 "), f"{kernel}: {head}"
        slept, anatomy = int(head.split()[4]), json.loads(body)["records"][0]["anatomy"]
        program, lost = anatomy["program"], anatomy["counts"]["lost_events"]
        untold, edges = program["incomplete"], program["edges"]
        woken = sum(edge["wakes"] for edge in edges if edge["waiter"] == "waiter")
        good = sum(edge["wakes"] for edge in edges if right(edge, kind))
        found = f"{kernel}, {engine}, {kind}: {good} of {woken} wake-ups, {slept} sleeps, {untold} incomplete, {lost} lost"
        told = f"{found}, by {program['engine']}: {[[e['waker'], e['waiter'], e['mechanism'], e['wakes']] for e in edges]}"
        assert program["engine"] == engine and lost == 0 and slept > 100 and untold * 10 <= slept, told
        assert good >= 0.99 * woken and abs(good - slept) <= 0.01 * slept + untold, told
        print(found, flush=True)
        open(f"{said}.json", "w").write(body)
        letter = chr(ord("A") + [right(edge, kind) for edge in edges].index(True))
        # What came of the sleeps may be a reason to refuse.
        answers = {"show": {0: f"Edge {letter}: waker wakes waiter"}, "whatif": {0: "p99", 4: "is not known: "}}
        for verb, more in ("show", ""), ("whatif", "spin=50us --hand-over 240ns --sleep-cost 5us"):
            words = ["trace", verb, f"{said}.json", "--edge", letter, *more.split()]
            done = subprocess.run([doorbell, *words], capture_output=True, text=True)
            assert answers[verb].get(done.returncode, "no such status") in done.stdout, f"{told}: {done}"
    born = json.loads(next(line for line in lines if line.startswith(f"born {engine} ")).split(" ", 2)[2])
    born = {threads["name"]: threads["count"] for threads in born["records"][0]["anatomy"]["program"]["threads"]}
    assert born == {"sh": 7, "seq": 6, "busybox": 600}, f"{kernel}, {engine}: {born} of 7, 6 and 600"
    assert f"left {engine} 0" in lines, f"{kernel}: a killed recorder: {[line for line in lines if line.startswith('left')]}"
PYTHON
tried=
for kernel in 6.1 6.12 7.3; do
    step "a guest of $kernel"
    said=$scratch/$kernel
    "$doorbell" vm build --kernel "$kernel" >/dev/null
    # One CPU: of two emulated ones one met the breakpoint by which the other patched a trace event in, and 6.12 panicked.
    "$doorbell" vm shell --accel tcg --kernel "$kernel" --cpus 1 --timeout 60m --carry "$scratch/planted" \
        --carry "$scratch/guest.sh" -c "cd $scratch && sh guest.sh" >"$said" 2>"$said.errors" ||
        fail "status $?: $(cat "$said.errors"; cut -c -300 "$said")"
    grep -q "^${kernel//./\\.}\." "$said" || fail "that is not $kernel: $(head -1 "$said")"
    ! grep -q "kernel complained" "$said.errors" || fail "$(cat "$said.errors")"
    for engine in bpf tracefs; do
        grep -q "^engines.* $engine\b" "$said" && tried=yes || ci/skipped "63-trace-guests: $kernel cannot have --engine $engine"
    done
    python3 "$scratch/check.py" "$said" "$doorbell" || fail "so much for $kernel: $(cat "$said.errors")"
done
[ -n "$tried" ] || nothing_tried "no guest's kernel can have either engine"

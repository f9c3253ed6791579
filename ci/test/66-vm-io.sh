#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Polling proven where it can be made to happen: a guest whose NVMe device has queues without interrupts. Linux 6.1 polls for a ring
# set up with IORING_SETUP_IOPOLL and ignores RWF_HIPRI, and the device's interrupts tell the two apart. Judged by counts.
# Inputs: uintr/qemu/build uintr/qemu/patches crate:doorbell-vm lab/command/src/cli/vm.rs
# Inputs: lab/command/src/cli/vm lab/subjects/src/transfer
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/qemu.sh
ci/install/vm.sh
scratch
export XDG_STATE_HOME=$scratch/state

doorbell=$(ci/built)
qemu=$(uintr/qemu/build)
"$doorbell" vm build --accel uintr >/dev/null

# guest QUEUES ARGUMENT... : doorbell io in a guest, its result in result.json.
guest() {
    local queues=$1
    shift
    "$doorbell" vm run --qemu "$qemu" --nvme "$queues" --cpus 2 -- io "$@" --device /dev/nvme0n1 --count 200 --blocks 1 --details \
        -o "$scratch/result.json" >"$scratch/said" 2>&1 || fail "status $?: $(cat "$scratch/said")"
}
# holds EXPRESSION : a statement about the result, in Python, with its records by way and direction as `by`.
holds() {
    python3 - "$scratch/result.json" "$1" <<'PYTHON' || fail "not so: $1: $(cat "$scratch/said")"
import json, sys
r = json.load(open(sys.argv[1]))
by = {(t["configuration"]["subject"], t["configuration"]["pattern"]["direction"]): t for t in r["records"]}
kind = lambda *key: by[key]["outcome"]["kind"]
rules = lambda *key: [violation["rule"] for violation in by[key]["outcome"].get("violations", [])]
interrupts = lambda *key: by[key]["io"]["interrupts"]
sys.exit(not eval(sys.argv[2]))
PYTHON
}

# says TEXT : the text is in what was said, however its lines are broken.
says() { grep -qF -- "$1" <<<"$(tr -s ' \n' ' ' <"$scratch/said")"; }

echo "== queues to poll: what polls is proven, what only says so is caught"
guest poll sync sync-hipri uring uring-iopoll uring-hybrid uring-sqpoll-iopoll --rw read,write --write-device nvme0n1 --precondition 1
for direction in read write; do
    holds "kind('sync', '$direction') == kind('uring', '$direction') == 'done'"
    holds "interrupts('sync', '$direction') >= 180"
    holds "kind('uring-iopoll', '$direction') == 'done' and interrupts('uring-iopoll', '$direction') <= 12"
    holds "kind('sync-hipri', '$direction') == 'implausible' and rules('sync-hipri', '$direction') == ['poll-not-proven']"
    holds "kind('uring-hybrid', '$direction') == 'skipped'"
    holds "kind('uring-sqpoll-iopoll', '$direction') == 'done' and by['uring-sqpoll-iopoll', '$direction']['io']['kernel_thread_ns'] > 0"
done
holds "by['sync', 'read']['io']['prepared']['checked_sectors'] > 0 and by['sync', 'read']['io']['device']['polls']"
says 'RWF_HIPRI does not poll' || fail "the cure is not told: $(cat "$scratch/said")"

echo "== no queues to poll"
guest irq sync uring-iopoll
holds "kind('sync', 'read') == 'done' and by['sync', 'read']['io']['device']['polls'] is False"
holds "kind('uring-iopoll', 'read') == 'skipped' and 'no queue to poll' in by['uring-iopoll', 'read']['outcome']['reason']"
says 'poll_queues' || fail "the cure is not told: $(cat "$scratch/said")"
echo "66-vm-io: polling was told from waiting"

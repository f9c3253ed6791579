#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# How the cost of `fleet verdict` and `report` grows: simulated results of 1,000 to 100,000 hosts, each of some 27 kB (four records drawn from
# those of two real runs), read by an optimised build; CPU time and the most memory held, by wait4(2). The files take 3 GB and are deleted.
#   ci/soak/43-fleet.sh [HOSTS...]      [1000 10000 100000]; BUILT, if set, is an optimised program to use
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
python3 - "${BUILT:-$(ci/built --release)}" "$out" "${@:-}" <<'PY'
import json, os, random, subprocess, sys

doorbell, out, *hosts = sys.argv[1:]
runs = [json.load(open(f"lab/command/tests/data/{name}.json")) for name in ("ping", "ping-again")]
# The parts of a file that are the same in all are written once.
dumped = [json.dumps(record) for run in runs for record in run["records"]]
shell = {key: value for key, value in runs[0].items() if key not in ("records", "name", "verdict", "started_at_unix_ns", "finished_at_unix_ns")}
# What they were held against is not at hand, so that their verdicts stand as they are written.
shell["plan"]["question"] = {"kind": "check", "baseline": {"file": "main", "started_at_unix_ns": 1}, "conditions": []}
rest = json.dumps(shell)[1:]
drawn = random.Random(1)
os.mkdir(f"{out}/results")
written, size = 0, 0
for count in map(int, filter(None, hosts)) if any(hosts) else (1000, 10000, 100000):
    while written < count:
        began = 1_795_300_000_000_000_000 + written
        verdict = json.dumps({"status": "failed" if drawn.random() < 0.01 else "passed", "reason": "p99.9 80 µs > 50 µs"})
        text = f'{{"name": "node{written:06}", "started_at_unix_ns": {began}, "finished_at_unix_ns": {began + 1000000000}, "verdict": {verdict}, '
        text += f'"records": [{", ".join(drawn.sample(dumped, 4))}], {rest}'
        with open(f"{out}/results/node{written:06}.json", "w") as file:
            size += file.write(text)
        written += 1
    for verb, more in [("verdict", []), ("report", ["-o", f"{out}/pages", "--quiet"])]:
        with subprocess.Popen([doorbell, "fleet", verb, f"{out}/results", *more], stdout=subprocess.PIPE, text=True) as process:
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        # Some fail, which is a result.
        assert process.returncode in (0, 3), (verb, process.returncode, said[-500:])
        print(f"43-fleet: {count:,} results of {size / written / 1000:.1f} kB: {verb} {used.ru_utime + used.ru_stime:.1f} s of CPU time, "
              f"{used.ru_maxrss / 1024:.0f} MB", flush=True)
PY

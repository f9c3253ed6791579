#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The program for Windows, under Wine: its means keep their promises, real fan-outs to 2000 receivers with figures for each, and all that follows
# from its results here says that this is Wine, not Windows. For macOS it is type-checked, since nothing here can run it. That the lab itself is
# Linux's alone is said in one error.
# Inputs: crate:doorbell-lab crate:doorbell-other-systems
# Long: the program is compiled for two other systems.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/compilers aarch64-apple-darwin x86_64-pc-windows-gnu
package=doorbell-other-systems
target=aarch64-apple-darwin
if has_target "$target"; then
    cargo check --quiet --locked --package "$package" --all-targets --target "$target"
    echo "14-windows: the program type-checks for $target, and was not run"
else
    ci/skipped "14-windows: no standard library for $target is installed (ci/install/11-targets.sh)"
fi
target=x86_64-pc-windows-gnu
has_target "$target" || nothing_tried "no standard library for $target is installed"
[ "$(uname -m)" = x86_64 ] && ci/install/14-wine.sh || nothing_tried "Wine could not be installed"
scratch
if cargo check --quiet --locked --package doorbell-lab --lib --target "$target" 2>"$scratch/refused"; then
    fail "the lab builds for $target"
fi
[ "$(grep -c '^error: ' "$scratch/refused")" = 2 ] || { cat "$scratch/refused" >&2; fail "the lab is refused by more than one error"; }
grep -q 'build `doorbell-other-systems`' "$scratch/refused" || fail "what to build instead of the lab is not said"
built() { python3 -c 'import json, sys
print([it["executable"] for it in map(json.loads, sys.stdin) if it.get("executable")][-1])'; }
cp "$(cargo build --quiet --locked --package "$package" --target "$target" --message-format json | built)" "$scratch/program.exe"
cp "$(cargo test --quiet --locked --package "$package" --no-run --target "$target" --message-format json | built)" "$scratch/tests.exe"
wine() { timeout 300 ci/wine run "$@" 2>>"$scratch/complaints" | tr -d '\r'; }
# The program's own drive letter for this folder.
z() { echo "Z:${1//\//\\}"; }

wine "$scratch/tests.exe" --test-threads 1 >"$scratch/tests" || { cat "$scratch/tests" >&2; fail "its tests fail under Wine"; }
grep -q 'every_means_keeps_its_promises ... ok' "$scratch/tests" || fail "the means were not tried"

wine "$scratch/program.exe" list >"$scratch/list"
means="win-semaphore win-event wait-on-address srw-condvar iocp-post pipe"
for one in $means; do
    grep -q "^$one  *yes" "$scratch/list" || fail "$one is not here"
done
# Ten rounds of 20 and 200 receivers by each, the study's table of 20, and one round of 2000 by the semaphore.
# shellcheck disable=SC2086
wine "$scratch/program.exe" fanout $means -n 20,200 --rounds 10 --interval-ms 20 -o "$(z "$scratch/fanout.json")" >"$scratch/fanout"
wine "$scratch/program.exe" fanout win-semaphore -n 2000 --rounds 1 --interval-ms 100 -o "$(z "$scratch/many.json")" >"$scratch/many"
wine "$scratch/program.exe" fanout win-semaphore -n 20 --rounds 2 --interval-ms 1 --grid -o "$(z "$scratch/grid.json")" >"$scratch/grid"
# shellcheck disable=SC2086
wine "$scratch/program.exe" ping $means --gap-us 0,1000 --count 1000 -o "$(z "$scratch/ping.json")" >"$scratch/ping"
for text in fanout many grid ping; do
    grep -q 'Wine, not Windows' "$scratch/$text" || fail "what is printed of $text does not say that it is Wine"
done
python3 - "$scratch" <<'CHECK'
import json, sys
for name, receivers in [("fanout", {20, 200}), ("many", {2000}), ("grid", {20}), ("ping", None)]:
    result = json.load(open(f"{sys.argv[1]}/{name}.json"))
    assert result["machine"]["kernel"]["system"] == "Windows" and result["machine"]["kernel"]["stand_in"].startswith("Wine "), name
    assert any(warning["name"] == "stand-in" for warning in result["warnings"]), name
    for record in result["records"]:
        what = (record["configuration"]["subject"], record["configuration"]["pattern"])
        assert record["outcome"]["kind"] == "done", (what, record["outcome"])
        tally = record["tally"]
        assert tally["sent"] == tally["seen"] > 0 and tally.get("lost", 0) == 0, (what, tally)
        if receivers:
            told = record["fanout"]["receivers"]["p50_ns"]
            assert len(told) == record["configuration"]["pattern"]["receivers"] and all(each > 0 for each in told), what
    if receivers:
        assert {record["configuration"]["pattern"]["receivers"] for record in result["records"]} == receivers, name
grid = json.load(open(f"{sys.argv[1]}/grid.json"))["records"]
scenes = {(record["configuration"]["wait"]["kind"], record["configuration"]["placement"]["relation"], "load" in record) for record in grid}
assert len(grid) == len(scenes) == 8, scenes
assert all(record["load"]["fewest_slices"] > 0 for record in grid if "load" in record), "a load that did nothing"
CHECK
# Read where they were not made.
doorbell=$(ci/built)
"$doorbell" show "$scratch/fanout.json" | grep -q 'Wine, not Windows' || fail "what Linux shows of it does not say that it is Wine"
"$doorbell" report "$scratch/fanout.json" "$scratch/ping.json" -o "$scratch/page.html"
"$doorbell" export csv "$scratch/ping.json" -o "$scratch/ping.csv"
grep -q 'Wine, not Windows' "$scratch/page.html" || fail "the page does not say that it is Wine"
grep -q ',ns wine' "$scratch/ping.csv" || fail "an export takes Wine's nanoseconds for those of Windows"
"$doorbell" report "$scratch/grid.json" -o "$scratch/claims.html"
# Three claims about Windows, with the reason why Wine decides none.
[ "$(grep -o 'this is Wine, not Windows' "$scratch/claims.html" | wc -l)" -ge 3 ] || fail "the claims about Windows do not say that this is Wine"
echo "14-windows: six means, fan-outs to 2000 receivers and round trips ran under Wine, and say so"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The command for Windows, under Wine: its mechanisms keep their promises, a real fan-out with figures for each receiver, and all that follows
# from its result says that this is Wine, not Windows. For macOS it is type-checked, since nothing here can run it.
# Inputs: crate:doorbell-lab
# Long: the command is compiled for three other systems.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/compilers aarch64-apple-darwin x86_64-pc-windows-gnu
target=aarch64-apple-darwin
if has_target "$target"; then
    cargo check --quiet --locked --package doorbell-lab --target "$target"
    echo "14-windows: the command type-checks for $target, and was not run"
else
    ci/skipped "14-windows: no standard library for $target is installed (ci/install/11-targets.sh)"
fi
target=x86_64-pc-windows-gnu
has_target "$target" || nothing_tried "no standard library for $target is installed"
[ "$(uname -m)" = x86_64 ] && ci/install/14-wine.sh || nothing_tried "Wine could not be installed"
built() { python3 -c 'import json, sys
print([it["executable"] for it in map(json.loads, sys.stdin) if it.get("executable")][-1])'; }
doorbell=$(cargo build --quiet --locked --package doorbell-lab --target "$target" --message-format json | built)
tests=$(cargo test --quiet --locked --package doorbell-subjects --lib --no-run --target "$target" --message-format json | built)
machine=$(cargo test --quiet --locked --package doorbell-machine --lib --no-run --target "$target" --message-format json | built)
out=$(mktemp -d /tmp/doorbell-windows-XXXXXX)
trap 'rm -rf "$out"' EXIT
cp "$doorbell" "$out/doorbell.exe"
cp "$tests" "$out/tests.exe"
cp "$machine" "$out/machine.exe"
wine() { timeout 300 ci/wine run "$@" 2>>"$out/complaints" | tr -d '\r'; }
# The program's own drive letter for this folder.
z() { echo "Z:${1//\//\\}"; }

wine "$out/tests.exe" --test-threads 1 >"$out/tests" || { cat "$out/tests" >&2; fail "the mechanisms do not keep their promises"; }
grep -q 'every_mechanism_keeps_its_promises ... ok' "$out/tests" || fail "the mechanisms were not tried"

wine "$out/machine.exe" --test-threads 1 >"$out/tests" || { cat "$out/tests" >&2; fail "what is asked of the machine is not answered"; }

wine "$out/doorbell.exe" list >"$out/list"
mechanisms="win-semaphore win-event wait-on-address srw-condvar win-named-pipe iocp-post"
for mechanism in $mechanisms; do
    grep -q "^$mechanism  *yes" "$out/list" || fail "$mechanism is not here"
done
wine "$out/doorbell.exe" doctor >"$out/doctor" || [ $? -le 1 ]
grep -q 'Wine, not Windows' "$out/doctor" || fail "the doctor takes this for Windows"

# Ten rounds of 20 and 200 receivers by each mechanism, and one of 2000 by the semaphore.
# shellcheck disable=SC2086
wine "$out/doorbell.exe" fanout $mechanisms -n 20,200 --rounds 10 --interval 20ms -o "$(z "$out/fanout.json")" >"$out/fanout"
wine "$out/doorbell.exe" fanout win-semaphore -n 2000 --rounds 1 --interval 100ms -o "$(z "$out/many.json")" >"$out/many"
# shellcheck disable=SC2086
wine "$out/doorbell.exe" ping $mechanisms --gap 0,1ms --placement unpinned --blocks 1 -o "$(z "$out/ping.json")" >"$out/ping"
for text in fanout many ping; do
    grep -q 'Wine, not Windows' "$out/$text" || fail "a table does not say that it is Wine"
done
python3 - "$out" <<'CHECK'
import json, sys
for name, receivers in [("fanout", {20, 200}), ("many", {2000})]:
    result = json.load(open(f"{sys.argv[1]}/{name}.json"))
    assert result["machine"]["kernel"]["system"] == "Windows" and result["machine"]["kernel"]["stand_in"].startswith("Wine "), name
    assert any(warning["name"] == "stand-in" for warning in result["warnings"]), name
    assert {record["configuration"]["pattern"]["receivers"] for record in result["records"]} == receivers, name
    for record in result["records"]:
        what = (record["configuration"]["subject"], record["configuration"]["pattern"])
        assert record["outcome"]["kind"] == "done", (what, record["outcome"])
        tally = record["tally"]
        assert tally["sent"] == tally["seen"] > 0 and tally.get("lost", 0) == 0, (what, tally)
        told = record["fanout"]["receivers"]["p50_ns"]
        assert len(told) == record["configuration"]["pattern"]["receivers"] and all(each > 0 for each in told), what
ping = json.load(open(f"{sys.argv[1]}/ping.json"))
for record in ping["records"]:
    assert record["outcome"]["kind"] == "done", (record["configuration"]["subject"], record["outcome"])
CHECK
wine "$out/doorbell.exe" report "$(z "$out/fanout.json")" "$(z "$out/ping.json")" -o "$(z "$out/page.html")"
wine "$out/doorbell.exe" export csv "$(z "$out/ping.json")" -o "$(z "$out/ping.csv")"
grep -q 'Wine, not Windows' "$out/page.html" || fail "the page does not say that it is Wine"
grep -q ',ns wine' "$out/ping.csv" || fail "an export takes Wine's nanoseconds for those of Windows"
wine "$out/doorbell.exe" report "$(z "$out/many.json")" -o "$(z "$out/claims.html")"
# Three claims about Windows, with the reason why Wine decides none.
[ "$(grep -o 'this is Wine, not Windows' "$out/claims.html" | wc -l)" -ge 3 ] || fail "the claims about Windows do not say that this is Wine"
# Read again where it was not made.
"$(ci/built)" show "$out/fanout.json" | grep -q 'Wine, not Windows' || fail "what Linux shows of it does not say that it is Wine"
echo "14-windows: six mechanisms, fan-outs to 2000 receivers and round trips ran under Wine, and say so"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A real browser is told of events in every way it has, by a server of a kept library, with the real client of Socket.IO: none is lost and none
# comes twice, by a connection that changes over from polling neither; questions are as many as each way asks. No time is judged.
# Inputs: rivals/push ci/chromium.py
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/59-push.sh
ci/install/browser.sh
export CARGO_TARGET_DIR=$PWD/target/push/build
cargo fmt --check --manifest-path rivals/push/Cargo.toml
cargo build --locked --quiet --manifest-path rivals/push/Cargo.toml
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
timeout 300 rivals/push/compare --server "$CARGO_TARGET_DIR/debug/push" --rounds 2 --events 30 --gap-ms 5 --output "$out/trials"
python3 - "$out/trials" <<'PY'
import json, sys

trials = [json.loads(line) for line in open(sys.argv[1])]
assert len(trials) == 16, len(trials)
for one in trials:
    way, requests, events = one["way"], one["requests"], one["events"]
    pushed = way in ("sse", "websocket", "socket.io-websocket", "nothing")
    assert not pushed or requests == 0, f"{way} asks {requests} times while it is told of {events} events"
    # A question may bring several events to a browser that is busy; but without any, nothing comes.
    assert pushed or requests > 0, f"{way} asks for nothing"
    assert one["server_cpu_ns"] > 0 and one["browser_cpu_ns"] > 0, one
upgraded = [one["by"] for one in trials if one["way"] == "socket.io-upgrade"]
assert any(by.get("websocket") for by in upgraded), f"it never changed over: {upgraded}"
PY
# Without the client there is nothing to measure, and that is no success.
! rivals/push/compare --server "$CARGO_TARGET_DIR/debug/push" --client "$out/nothing.js" --rounds 1 2>/dev/null

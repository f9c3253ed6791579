#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Some seconds of bursts over every way of waiting and every kind of channel, between threads and processes: no ring may be lost, no
# message lost, doubled or torn. Most of the time what users build runs, and then the build with fault injection, whose points are
# full fences. ci/soak has an hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
seconds=${1:-20}
stress() { # seconds
    timeout "${DOORBELL_STRESS_LIMIT:-600}" "$target/release/examples/stress" "$1"
    timeout "${DOORBELL_STRESS_LIMIT:-600}" "$target/release/examples/stress_channels" "$1"
}
build() { # features
    cargo build --quiet --locked --release --package doorbell --features "$1" --example stress --example stress_channels
}
build io_uring,tokio,stream,zerocopy
stress "$seconds"
build io_uring,tokio,stream,zerocopy,fault_injection
stress "$((seconds / 4))"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Some seconds of bursts over every way of waiting, between threads and processes: no ring may be lost. ci/soak has half an hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --quiet --locked --release --package doorbell --all-features --example stress
timeout "${DOORBELL_STRESS_LIMIT:-600}" "${CARGO_TARGET_DIR:-target}/release/examples/stress" "${1:-20}"

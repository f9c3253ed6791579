#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A minute of bursts over every way of waiting, between threads and processes: no ring may be lost.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --package doorbell --all-features --example stress
timeout 600 target/release/examples/stress "${1:-50}"

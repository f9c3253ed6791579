#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The comparison with other tools: its reading of their output and its arithmetic; no timing is judged.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=target/peers/build
cargo test --quiet --manifest-path rivals/peers/Cargo.toml

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Explores the races of the wake protocol with loom, and proves that loom catches the broken variants.
set -euo pipefail
cd "$(dirname "$0")/../.."
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom RUST_BACKTRACE=0 \
    cargo test --release --package doorbell-core --lib races

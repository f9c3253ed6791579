#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The fuzzer's target, which stands apart from the workspace and runs in the soak alone, compiles.
# Inputs: lab/fuzz/Cargo.toml lab/fuzz/fuzz_targets crate:doorbell-report
set -euo pipefail
cd "$(dirname "$0")/../.."
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz cargo check --quiet --manifest-path lab/fuzz/Cargo.toml

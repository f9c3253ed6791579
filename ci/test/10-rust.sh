#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Lints, documentation and the tests of every crate of the workspace.
# Long: every crate is built and tested.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/lints
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --lib --no-deps --all-features --locked
# The fuzzer's target stands apart from the workspace, and only the soak runs it: here it must compile.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz cargo check --quiet --manifest-path fuzz/Cargo.toml
ci/built >/dev/null
cargo test --workspace --all-features --locked

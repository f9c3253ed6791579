#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Lints, documentation and the tests of every crate of the workspace.
# Long: every crate is built and tested.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/10-rust.sh
ci/lints
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --lib --no-deps --all-features --locked
# As `cargo run --release` builds the command, without what a first answer does not need.
cargo check --quiet --locked
ci/built >/dev/null
# One thread more than CPUs: the command's tests wait for a third of their time.
RUST_TEST_THREADS=$(($(nproc) + 1)) cargo test --workspace --all-features --locked

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Format, lints, documentation and the tests of every crate of the workspace.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --lib --no-deps --all-features --locked
cargo test --workspace --locked

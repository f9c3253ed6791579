#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The comparisons' own tests, one round of the bell's, and some seconds of the stress for lost wake-ups. That both sides of every bar
# get through is the test, and that the stress finds what is planted and nothing else. What they measure on a busy machine is
# printed, not judged.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=$PWD/target/rivals
cargo test --locked --quiet --manifest-path rivals/bell/Cargo.toml --package rivals-rounds
cargo build --locked --quiet --release --manifest-path rivals/bell/Cargo.toml
status=0
timeout 120 target/rivals/release/rivals-bell bars --rounds 1 || status=$?
# 1: a bar was missed.
[ "$status" -le 1 ]

# Without iceoryx2, which takes minutes to build.
wakes=(--locked --quiet --release --no-default-features --manifest-path rivals/wakes/Cargo.toml)
cargo test "${wakes[@]}"
cargo build "${wakes[@]}"
timeout 300 target/rivals/release/rivals-wakes --time 12 --rounds 1 --notifiers 3 --only doorbell,eventfd
# It ends as soon as that is found; the other planted mistakes are in the tests.
timeout 300 target/rivals/release/rivals-wakes --time 120 --rounds 1 --notifiers 1 --only 'does not return'

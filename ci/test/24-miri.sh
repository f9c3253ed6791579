#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The lane, the broadcast and the wake protocol between threads of Miri, which gives each load any store that the language's memory
# model allows, and reports races of what is not atomic: with other interleavings and other stores for each seed.
# Inputs: crate:doorbell-core
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/compilers miri
cargo +nightly miri --version >/dev/null 2>&1 || nothing_tried "Miri is not installed"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri
MIRIFLAGS="-Zmiri-many-seeds=0..${DOORBELL_SEEDS:-24} -Zmiri-disable-isolation" \
    timeout "${DOORBELL_MIRI_LIMIT:-2400}" cargo +nightly miri test --locked --package doorbell-core --lib -- threads_of_miri

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Channels and bells with every feature: a death at each write to shared memory, random kills, a peer that scribbles, tasks
# that await. How soon a survivor is told is `rivals/run deaths`, a benchmark with a verdict.
# DOORBELL_KILLS and DOORBELL_MUTATIONS set how many.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test --locked --package doorbell --all-features --lib --test bell --test channel
cargo test --locked --package doorbell --all-features --doc

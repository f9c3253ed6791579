#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# An hour of bursts over every way of waiting and every kind of channel, some of it with fault injection, then ten thousand deaths: no
# ring and no message may be lost, every survivor is told.
set -euo pipefail
cd "$(dirname "$0")/../.."
DOORBELL_STRESS_LIMIT=3600 ci/test/21-stress.sh "${1:-1800}"
DOORBELL_KILLS="${DOORBELL_KILLS:-10000}" cargo test --release --locked --package doorbell --all-features --test channel death

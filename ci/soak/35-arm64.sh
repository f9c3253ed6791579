#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Twenty minutes of the stress between threads and processes under an arm64 kernel on an emulated machine of four CPUs.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/arm64-guest --cpus 4 --seconds "${1:-600}"

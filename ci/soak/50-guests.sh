#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The lab's own tests and ten minutes of stress in guests, on CPUs with user interrupts and without.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/built >/dev/null
ci/suite-guest
ci/stress-guest --seconds "${1:-600}"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Ten minutes of fuzzing the reader of result files and all that follows it; `ci/soak/20-fuzz.sh SECONDS` for more.
set -euo pipefail
exec "$(dirname "$0")/../../lab/fuzz/run" "${1:-600}"

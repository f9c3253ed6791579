#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Twenty minutes of the stress for lost wake-ups over every means of waking, with the mistakes that are planted to be found; and the
# bars of the bell and of deaths, whose verdicts count here.
set -euo pipefail
cd "$(dirname "$0")/../.."
rivals/run wakes --time "${1:-1200}"
rivals/run deaths
rivals/run bars --rounds 300

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every mechanism on every kernel of every architecture, and the library's stress for a minute each: the table of book/everywhere.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/everywhere --seconds "${1:-60}" --late 2000 --write

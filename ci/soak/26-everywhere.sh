#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every mechanism on every kernel of every architecture, and the library's stress for a minute each: the table of book/everywhere.md. Then the
# stress for ten minutes more between threads and between processes of four ARM processors.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/everywhere --seconds "${1:-60}" --late 2000 --write
ci/everywhere aarch64/6.12 --cpus 4 --seconds "${2:-600}" --count 20 --late 0

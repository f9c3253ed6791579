#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The library under an arm64 kernel on an emulated machine of two CPUs: some seconds of the stress between threads and processes, and
# the tests of channels. ci/soak/35-arm64.sh is longer.
set -euo pipefail
cd "$(dirname "$0")/../.."
for needed in qemu-system-aarch64 aarch64-linux-gnu-gcc aarch64-linux-gnu-strip cpio dpkg-deb; do
    command -v "$needed" >/dev/null || { ci/skipped "25-arm64: no $needed (ci/install/11-targets.sh)"; exit 0; }
done
[ -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu/lib" ] ||
    { ci/skipped "25-arm64: no standard library for aarch64-unknown-linux-gnu (ci/install/11-targets.sh)"; exit 0; }
ci/arm64-guest --seconds "${1:-10}"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A guest of ARM: all its mechanisms are rehearsed and measured, the library's stress loses no wake-up, and the tests of channels run between
# processes. RISC-V, which takes a second build of all, and the other kernels are ci/soak/26-everywhere.sh's.
# Inputs: crate:doorbell-subjects crate:doorbell-vm ci/everywhere_table.py
# Long: the command is compiled for another processor.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/common
ci/install/processors
ci/install/machines
for needed in qemu-system-aarch64 aarch64-linux-gnu-gcc dpkg-deb; do
    command -v "$needed" >/dev/null || nothing_tried "no $needed (ci/install/11-targets.sh)"
done
has_target aarch64-unknown-linux-gnu || nothing_tried "no standard library for aarch64-unknown-linux-gnu (ci/install/11-targets.sh)"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
ci/everywhere aarch64/6.12 --seconds 2 --count 20 --late 0 2>"$said" || status=$?
cat "$said" >&2
# The kernel comes over the network, once.
[ "$status" != 3 ] || nothing_tried "$(tail -1 "$said")"
exit "$status"

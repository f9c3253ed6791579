#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The series for QEMU 10.2, in all that the one for 10.0 is held to; some 10 minutes more on two cores for the first build.
set -euo pipefail
DOORBELL_QEMU_RELEASE=10.2 exec "$(dirname "$0")/../test/60-qemu.sh"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The conformance program and the cases of kvm-unit-tests on a second machine, Bochs, which is not ours: what it does otherwise
# is what conformance/bochs.txt lists, no more and no less.
# Inputs: uintr/qemu/bochs uintr/qemu/conformance
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/qemu.sh
uintr/qemu/conformance/bochs --timeout 1200

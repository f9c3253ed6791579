#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Searches the largest configuration of the user-interrupt model, and one hazard through the command's own text.
# Inputs: crate:doorbell-uintr lab/command/src/cli/model.rs
set -euo pipefail
cd "$(dirname "$0")/../.."
doorbell=$(ci/built)
"$doorbell" model uintr --full
"$doorbell" model uintr --hazard H4 >/dev/null
echo "model: no fault in the full configuration"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Searches the largest configuration of the user-interrupt model, and one hazard through the command's own text.
# Inputs: crate:doorbell-uintr
set -euo pipefail
cd "$(dirname "$0")/../.."
model=$(dirname "$(ci/built)")/examples/model
"$model" uintr --full
"$model" uintr --hazard H4 >/dev/null
echo "model: no fault in the full configuration"

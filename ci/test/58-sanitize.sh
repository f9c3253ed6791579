#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The library's own tests under the address sanitizer, with few deaths; ci/soak has more of them, and the thread sanitizer.
# Inputs: crate:doorbell
set -euo pipefail
cd "$(dirname "$0")/../.."
export DOORBELL_KILLS="${DOORBELL_KILLS:-10}"
exec timeout 1200 ci/sanitize address

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The library under the sanitizers: as many deaths as the tests have without them, a hundred million mutations of a hostile peer.
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/sanitize
DOORBELL_MUTATIONS="${DOORBELL_MUTATIONS:-100000000}" ci/sanitize address hostile

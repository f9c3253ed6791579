#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The live page in a real browser while a run goes on: its distribution grows, hostile names stay text, pages of elsewhere are refused. Leaves
# pictures of it in target/live/.
# Inputs: crates/report/src/live.rs crates/report/templates crates/lab/src/cli/top ci/chromium.py
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/browser.sh
doorbell=$(ci/built)
out=$PWD/target/live
rm -rf "$out"
mkdir -p "$out"
timeout 600 ci/live.py "$doorbell" "$out"
for picture in "$out"/*.png; do
    # A page of one colour compresses to next to nothing.
    [ "$(stat -c %s "$picture")" -gt 15000 ] || { echo "42-live: $picture is blank" >&2; exit 1; }
done
echo "42-live: pictures in $out"

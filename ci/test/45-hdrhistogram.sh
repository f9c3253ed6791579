#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Reads the HdrHistogram exports of real results with another implementation and holds them against the result files.
# Inputs: lab/report/src/export/hdr_log.rs lab/report/src/export/hdr_text.rs
# Inputs: lab/results/src/record
set -euo pipefail
cd "$(dirname "$0")/../.."
ci/install/hdrhistogram.sh
doorbell=$(ci/built)
python="${CARGO_TARGET_DIR:-target}/hdrhistogram/bin/python"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for result in lab/command/tests/data/{ping,survey}.json; do
    "$doorbell" export hlog "$result" -o "$out/log"
    "$doorbell" export hgrm "$result" -o "$out/text"
    "$python" ci/hdrhistogram.py "$result" "$out/log" "$out/text"
done

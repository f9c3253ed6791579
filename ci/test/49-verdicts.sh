#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Exports read by DuckDB and by Prometheus's own parser; the stock queries of the book.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --quiet --locked --package doorbell-lab
doorbell="${CARGO_TARGET_DIR:-target}/debug/doorbell"
ci/install/49-readers.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
results=crates/lab/tests/data
for name in ping ping-again survey; do
    cp "$results/$name.json" "$out/"
    "$doorbell" export openmetrics "$out/$name.json" -o "$out/$name.prom"
    "$doorbell" export parquet "$out/$name.json" -o "$out/$name.figures.parquet"
    "$doorbell" export parquet-bins "$out/$name.json" -o "$out/$name.bins.parquet"
done
"$(ci/readers)/bin/python" ci/readers.py "$out" book/queries.md

# A broken export does not pass for a sound one.
head -c 20000 "$out/survey.prom" >"$out/cut.txt" && mv "$out/cut.txt" "$out/survey.prom"
if "$(ci/readers)/bin/python" ci/readers.py "$out" book/queries.md >/dev/null 2>&1; then
    echo "49-verdicts: a cut export was taken for whole: this test proves nothing" >&2
    exit 1
fi

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads exports with programs that share no code with their writers, and holds them against the result files.

readers.py FOLDER PAGE: FOLDER has NAME.json, NAME.figures.csv, NAME.bins.csv and NAME.prom; PAGE has the stock queries.
"""

import json
import math
import pathlib
import re
import sys

import duckdb
from prometheus_client.parser import text_string_to_metric_families

folder, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
results = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
assert len(results) >= 3, "too few results to ask anything of"
usable = {
    name: [r for r in result["records"] if r["outcome"]["kind"] in ("done", "partial")]
    for name, result in results.items()
}


def called(result):
    return result.get("name") or str(result["started_at_unix_ns"])


def samples(quantity, which=lambda record: True):
    return sum(
        r["series"][quantity]["count"] for rs in usable.values() for r in rs if quantity in r["series"] and which(r)
    )


# The metrics: every family parses, and says what the result says.
for name, result in results.items():
    families = {family.name: family for family in text_string_to_metric_families((folder / f"{name}.prom").read_text())}
    latency = families["doorbell_latency_seconds"]
    assert latency.type == "summary", latency
    counts = sum(s.value for s in latency.samples if s.name.endswith("_count"))
    assert counts == sum(s["count"] for r in usable[name] for s in r["series"].values()), name
    buckets = families["doorbell_latency_buckets_seconds"]
    assert buckets.type == "histogram"
    whole = sum(s.value for s in buckets.samples if s.labels.get("le") == "+Inf")
    assert whole == counts, name
    trials = sum(s.value for s in families["doorbell_trials"].samples)
    assert trials == len(result["records"]), name
    (finished,) = families["doorbell_run_finished_timestamp_seconds"].samples
    assert math.isclose(finished.value, result["finished_at_unix_ns"] / 1e9, rel_tol=1e-9)
    medians = [s for s in latency.samples if s.labels.get("quantile") == "0.5" and s.labels["quantity"] == "round-trip"]
    assert medians and all(1e-9 < s.value < 10 for s in medians), name
    print(f"prometheus {name}: {len(families)} families, {sum(len(f.samples) for f in families.values())} samples")

# The queries, as they stand on the page.
text = page.read_text()
setup, *queries = re.findall(r"```sql\n(.*?)```", text, re.S)
titles = re.findall(r"^## (\d+\. .*)$", text, re.M)
assert len(queries) == len(titles) == 10, (len(queries), titles)
db = duckdb.connect()
db.execute(f"SET file_search_path = '{folder}'")
db.execute(setup)

lines = db.execute("SELECT count(*) FROM figures").fetchone()[0]
assert lines > 1000, lines
trials = sum(len(rs) for rs in usable.values())
back_to_back = lambda r: r["configuration"]["pattern"].get("gap_ns") == 0 and r["configuration"]["subject"] != "null"
seen = sum(
    r["tally"]["seen"]
    for rs in usable.values()
    for r in rs
    if r["configuration"]["pattern"]["kind"] in ("ping-pong", "one-way", "open-loop")
)
is_time = lambda row, column: all(10 < r[column] < 1e10 for r in row)


def fastest(rows):
    own = [
        r
        for rs in usable.values()
        for r in rs
        if "round-trip" in r["series"] and back_to_back(r) and r["configuration"]["wait"]["kind"] == "block"
    ]
    assert sum(r["trials"] for r in rows) == len(own)
    best = min(rows, key=lambda r: r["p50_ns"])
    assert min(r["series"]["round-trip"]["p50_ns"] for r in own) == min(r["fastest_trial_ns"] for r in rows)
    assert best["fastest_trial_ns"] <= best["p50_ns"] <= best["slowest_trial_ns"]


def exact(rows):
    assert sum(r["samples"] for r in rows) == samples("round-trip") + samples("wake")
    longest = max(
        r["series"][q]["max_ns"] for rs in usable.values() for r in rs for q in ("round-trip", "wake") if q in r["series"]
    )
    assert all(10 < r["p999_ns"] <= longest * 1.001 for r in rows)


def odd(rows):
    named = {called(result) for result in results.values()}
    assert {r["result"] for r in rows} <= named and all(r["runs"] > 1 and 0.01 < r["ratio"] < 100 for r in rows)


checks = {
    1: lambda rows: sum(r["trials"] for r in rows) == sum(len(r["records"]) for r in results.values())
    and len(rows) == len(results),
    2: fastest,
    3: lambda rows: sum(r["wakes"] for r in rows) == seen and all(1 < r["cpu_ns_per_wake"] < 1e9 for r in rows),
    4: exact,
    5: lambda rows: is_time(rows, "p50_ns") and all(r["best_run_ns"] <= r["p50_ns"] <= r["worst_run_ns"] for r in rows),
    6: odd,
    7: lambda rows: is_time(rows, "p50_ns") and all(r["quarter_ns"] <= r["p50_ns"] <= r["three_quarters_ns"] for r in rows),
    8: lambda rows: sum(r["samples"] for r in rows)
    == samples("wake", lambda r: r["configuration"]["pattern"]["kind"] == "one-way" and r["configuration"]["subject"] != "null"),
    9: lambda rows: all(0 <= r["share"] <= 1 for r in rows)
    and sum(r["samples"] for r in rows)
    == sum(samples(q, lambda r: r["configuration"]["subject"] != "null") for q in ("round-trip", "wake")),
    10: lambda rows: len(rows) == trials,
}
for number, (title, query) in enumerate(zip(titles, queries), 1):
    found = db.execute(query)
    columns = [column[0] for column in found.description]
    rows = [dict(zip(columns, row)) for row in found.fetchall()]
    assert rows, f"{title}: no answer"
    assert checks[number](rows) in (True, None), f"{title}: {rows[:5]}"
    print(f"{title} {len(rows)} rows")

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds the interval log and the percentile text of a result against the result file: RESULT LOG TEXT."""

import collections
import json
import math
import re
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

HOUR_PS = 3_600_000_000_000_000


def cumulated(histogram):
    """Each recorded value, as the highest it stands for, with the samples up to it."""
    seen, points = 0, []
    for item in histogram.get_recorded_iterator():
        seen += item.count_at_value_iterated_to
        points.append((histogram.get_highest_equivalent_value(item.value_iterated_to), seen))
    return points


def quantile(points, total, share):
    rank = max(1, math.ceil(share * total - 1e-9))
    return next(value for value, seen in points if seen >= rank)


def same(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what}: the result file says {ours}, what was exported says {theirs}")


result_file, log_file, text_file = sys.argv[1:]
with open(result_file, encoding="utf-8") as file:
    result = json.load(file)
reader = HistogramLogReader(log_file, HdrHistogram(1, HOUR_PS, 3))
sums = collections.OrderedDict()
intervals = 0
for record in result["records"]:
    if record["outcome"]["kind"] not in ("done", "partial"):
        continue
    for quantity, series in record["series"].items():
        histogram = reader.get_next_interval_histogram()
        if histogram is None:
            sys.exit(f"the log ends after {intervals} intervals")
        intervals += 1
        tag = histogram.get_tag()
        same(f"{tag}, quantity", quantity, tag.rsplit(".", 1)[1])
        same(f"{tag}, count", series["count"], histogram.get_total_count())
        points = cumulated(histogram)
        for key, share in [("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)]:
            same(f"{tag}, {key}", round(series[key] * 1000), quantile(points, series["count"], share))
        sums.setdefault(tag, HdrHistogram(1, HOUR_PS, 3)).add(histogram)
same("intervals", None, reader.get_next_interval_histogram())

# The sections of the text, in the order of the plan, hold all trials of a configuration together.
sections, current = [], None
with open(text_file, encoding="utf-8") as file:
    for line in file:
        if re.match(r"#\[.*, us\]$", line):
            current = []
            sections.append(current)
        elif re.match(r" *\d", line):
            current.append(line.split())
same("sections", len(sums), len(sections))
left = [(tag, cumulated(histogram)) for tag, histogram in sums.items()]
lines = 0
for section in sections:
    def fits(points):
        counts = dict((f"{value / 1e6:.6f}", seen) for value, seen in points)
        return all(counts.get(value) == int(seen) for value, _, seen, *_ in section)

    match = next((index for index, (_, points) in enumerate(left) if fits(points)), None)
    if match is None:
        sys.exit(f"a section of the text that ends in {section[-1]} is in no histogram of the log")
    left.pop(match)
    lines += len(section)
print(f"{result_file}: {intervals} histograms and {lines} lines of {len(sections)} sections read alike")

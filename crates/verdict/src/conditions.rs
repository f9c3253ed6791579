// SPDX-License-Identifier: MIT OR Apache-2.0
//! In what two cells were measured under other conditions.

use doorbell_results::cell::Cell;

/// What `cell` and `other` differ in, as "measured under other conditions: timing, window"; none if they are the same.
pub fn other_conditions(cell: &Cell, other: &Cell) -> Option<String> {
    let differing = differing(cell, other);
    (!differing.is_empty()).then(|| format!("measured under other conditions: {}", differing.join(", ")))
}

/// What two cells differ in, by name.
pub(super) fn differing(cell: &Cell, other: &Cell) -> Vec<&'static str> {
    // Taken apart, so that what a cell gets besides cannot be forgotten here.
    let Cell {
        subject,
        contexts,
        pattern,
        timing,
        wait,
        placement,
        size,
        until,
        scheduler,
        injected_slowdown_ppm,
        without_yardstick,
        load,
        trace,
        target,
        latency_limit_us,
    } = other;
    [
        (cell.subject == *subject, "mechanism"),
        (cell.contexts == *contexts, "sides"),
        (cell.pattern == *pattern, "pattern or gap"),
        (cell.timing == *timing, "timing"),
        (cell.wait == *wait, "wait"),
        (cell.placement == *placement, "placement"),
        (cell.size == *size, "message"),
        (cell.until == *until, "window"),
        (cell.scheduler == *scheduler, "scheduler"),
        (cell.injected_slowdown_ppm == *injected_slowdown_ppm, "slowdown on purpose"),
        (cell.without_yardstick == *without_yardstick, "yardstick"),
        (cell.load == *load, "load"),
        (cell.trace == *trace, "trace"),
        (cell.target == *target, "target"),
        (cell.latency_limit_us == *latency_limit_us, "latency limit"),
    ]
    .into_iter()
    .filter_map(|(same, name)| (!same).then_some(name))
    .collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! In what two configurations were measured under other conditions.

use doorbell_results::configuration::Configuration;

/// What `configuration` and `other` differ in, as "measured under other conditions: timing,
/// window"; none if they are the same.
pub fn other_conditions(configuration: &Configuration, other: &Configuration) -> Option<String> {
    let differing = differing(configuration, other);
    (!differing.is_empty()).then(|| format!("measured under other conditions: {}", differing.join(", ")))
}

/// What two configurations differ in, by name.
pub(super) fn differing(configuration: &Configuration, other: &Configuration) -> Vec<&'static str> {
    // Taken apart, so that what a configuration gets besides cannot be forgotten here.
    let Configuration {
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
        load,
        trace,
        target,
        latency_limit_us,
        schedule,
        beside,
    } = other;
    [
        (configuration.subject == *subject, "mechanism"),
        (configuration.contexts == *contexts, "threads or processes"),
        (configuration.pattern == *pattern, "pattern or gap"),
        (configuration.timing == *timing, "timing"),
        (configuration.wait == *wait, "wait"),
        (configuration.placement == *placement, "placement"),
        (configuration.size == *size, "message"),
        (configuration.until == *until, "window"),
        (configuration.scheduler == *scheduler, "scheduler"),
        (configuration.injected_slowdown_ppm == *injected_slowdown_ppm, "slowdown on purpose"),
        (configuration.load == *load, "load"),
        (configuration.trace == *trace, "trace"),
        (configuration.target == *target, "target"),
        (configuration.latency_limit_us == *latency_limit_us, "latency limit"),
        (configuration.schedule == *schedule, "schedule"),
        (configuration.beside == *beside, "descriptors beside"),
    ]
    .into_iter()
    .filter_map(|(same, name)| (!same).then_some(name))
    .collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! No waiter is awake before its notifier calls.

use super::{Known, Rule, waits};
use doorbell_results::about::About;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Quantity, Record};
use doorbell_results::written::time_ns;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "before-its-cause",
        what: "A waiter was awake before its notifier's call: the clocks of the two CPUs are out of step.",
        taken: "Half of the round trips or wake-up latencies came out as nothing.",
        misleads: "Clocks that are out of step in the other direction make wake-ups longer, and \
            are not seen here: `doorbell doctor` tells the skew. Fewer than half mark the trial as \
            `within-clock-skew`.",
    },
    evidence,
};

/// Readings of two cores' clocks that are out of step make a wake-up end before it began; the
/// difference is then cut to nothing.
fn evidence(record: &Record, _: &Known) -> Vec<String> {
    if waits(record).is_none_or(|waits| waits == Waits::Nothing) {
        return Vec::new();
    }
    [Quantity::RoundTrip, Quantity::Wake, Quantity::WakeBack, Quantity::Response]
        .into_iter()
        .filter_map(|quantity| {
            let series = record.series.get(&quantity).filter(|series| series.count > 0)?;
            // What is recorded as nothing counts as one picosecond.
            (series.p50_ns <= 0.001).then(|| {
                format!(
                    "{} p50 {}: awake before the notifier's call",
                    quantity.name(),
                    time_ns(series.p50_ns)
                )
            })
        })
        .collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! No time is longer than the trial it was taken in.

use super::{Known, Rule};
use doorbell_results::about::About;
use doorbell_results::record::{Quantity, Record};
use doorbell_results::written::time_ns;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "longer-than-run",
        what: "A time, or the sum of times that follow each other, is longer than the trial itself.",
        taken: "The longest time, the sum of a closed loop's times and each side's CPU time \
            against the window, with one per cent and a millisecond to spare.",
        misleads: "An open loop's times overlap: only the longest is held against the window \
            there. Threads that wait at once may add up to as many windows.",
    },
    evidence,
};

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let windows = record.sides.iter().map(|side| side.window_ns);
    let window = windows.chain([record.environment.wall_ns]).max().unwrap_or(0);
    if window == 0 {
        return Vec::new();
    }
    // The two clocks behind the figures agree to well under a
    // percent; a millisecond for the ends of the window.
    let limit = window as f64 * 1.01 + 1e6;
    // Each of them has a closed loop of its own.
    let at_once = f64::from(record.configuration.pattern.streams().unwrap_or(1));
    let mut evidence = Vec::new();
    for (&quantity, series) in &record.series {
        if series.max_ns > limit {
            evidence.push(format!(
                "{} max {} in a run of {}",
                quantity.name(),
                time_ns(series.max_ns),
                time_ns(window as f64)
            ));
        }
        // Rounds of a closed loop follow each other, so their sum fits too.
        let in_turn = matches!(
            quantity,
            Quantity::RoundTrip | Quantity::Notify | Quantity::AroundWait | Quantity::Transfer
        );
        let sum = series.mean_ns * series.count as f64;
        if in_turn && sum > limit * at_once {
            evidence.push(format!(
                "{} sum {} in a run of {}",
                quantity.name(),
                time_ns(sum),
                time_ns(window as f64)
            ));
        }
    }
    for side in &record.sides {
        // Where the kernel accounts by ticks a side may be charged for one it did not use, 10 ms at 100 Hz.
        let cpu = side.user_ns + side.system_ns;
        if side.window_ns > 0 && cpu as f64 > side.window_ns as f64 * 1.05 * at_once + 2e7 {
            evidence.push(format!(
                "the {} used {} of CPU in {}",
                side.side,
                time_ns(cpu as f64),
                time_ns(side.window_ns as f64)
            ));
        }
    }
    evidence
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing is faster than the primitive costs of the machine.

use super::{Known, Rule, waits};
use doorbell_results::about::About;
use doorbell_results::configuration::Timing;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Quantity, Record};
use doorbell_results::written::time_ns;

pub const NAME: &str = "below-primitive-cost";

pub(super) const RULE: Rule = Rule {
    about: About {
        name: NAME,
        what: "A time is shorter than the machine can be: no word reaches another core faster than \
            a cache line does, and on one core a waiter runs only after a switch.",
        taken: "The median, with a step of the clock and between two CPUs the clocks' skew added, \
            against half the lowest reading of its primitive cost in the whole run and, where it \
            lies below, in one more taken at once; on two cores a cache-line hop each way, on one \
            core a switch, and for a verified blocked wake the two-core wake.",
        misleads: "Primitive costs are those of two cores: of two threads of one core the rule \
            knows nothing. Where a primitive cost is missing, or rests on fewer than twenty \
            samples because others used the CPUs, the rule is silent.",
    },
    evidence,
};

/// How far below the lowest reading of a primitive cost a figure must be to be impossible. The
/// primitive costs themselves move: the same cache-line program took 43 to 240 ns within an hour on
/// one virtual machine, but its lowest readings within a run stayed within a factor of two.
const SLACK: f64 = 0.5;

/// Fewest samples of which the lowest is a primitive cost. On a machine whose CPUs others use a
/// single sample may hold their time slices, and its share of the reading's time may be used up by
/// it; of twenty one at least lies within a slice of its own.
const FEWEST: u64 = 20;

fn evidence(record: &Record, known: &Known) -> Vec<String> {
    if matches!(waits(record), None | Some(Waits::Nothing)) {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    for (&quantity, series) in &record.series {
        let hops = match quantity {
            Quantity::RoundTrip => 2.0,
            quantity if quantity.is_one_way() => 1.0,
            _ => continue,
        };
        // Half of the samples: one alone is one reading of a clock, and from
        // ring to ring (`role::ping` of the harness) a reading delayed by an
        // interrupt lengthens one round and shortens the next by as much.
        let longest_ns = series.p50_ns + known.unsure_ns(record, quantity);
        let mut below = |primitive: &str, times: f64| {
            if let Some(least) = primitive_ns(known, primitive).map(|ns| ns * times)
                && longest_ns < least
            {
                let name = quantity.name();
                evidence.push(format!(
                    "{name} p50 {}, {} at most, {times} x {primitive} at least {}",
                    time_ns(series.p50_ns),
                    time_ns(longest_ns),
                    time_ns(least)
                ));
            }
        };
        match same_cpu(record) {
            // No word reaches another core faster than a cache line does.
            Some(false) => below("cache-line-hop", hops),
            // On one core the waiter runs only after a switch.
            Some(true) => below("same-core-switch", hops),
            None => {}
        }
        let proven = record.configuration.timing == Timing::Blocked && waits(record) == Some(Waits::Blocks);
        if proven && same_cpu(record) == Some(false) && quantity == Quantity::Wake {
            below("two-core-wake", 1.0);
        }
    }
    evidence
}

/// The lowest reading of a primitive cost in the whole run, times [`SLACK`].
fn primitive_ns(known: &Known, name: &str) -> Option<f64> {
    let readings = known.primitives.iter().flat_map(|reading| &reading.primitives);
    let lowest = readings
        .filter(|primitive| primitive.name == name && primitive.count >= FEWEST)
        .map(|primitive| primitive.min_ns);
    lowest.min_by(f64::total_cmp).map(|ns| ns * SLACK)
}

/// Whether the sides are pinned to one CPU, to two, or not at all.
fn same_cpu(record: &Record) -> Option<bool> {
    record.configuration.placement.cpus.map(|[first, second]| first == second)
}

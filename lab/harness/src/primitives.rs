// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's primitive costs, measured beside each block of trials: the costs of which every
//! wake-up is a small multiple.
//!
//! They are measured in a process of its own, fresh like a trial's, and tell two things: a figure
//! below its primitive cost is an error, and where the primitive costs themselves moved between two
//! runs, the difference of their figures is the machine's.

use doorbell_results::about::About;
use doorbell_results::record::result::Primitives;

mod cache_line_hop;
mod calls;
mod measured;
mod same_core_switch;
mod samples;
mod two_core_wake;

pub use measured::{PRIMITIVES_VERB, main, measure};

/// What each primitive cost is, cheapest first.
pub const PRIMITIVES: [About; 6] = [
    About {
        name: "clock",
        what: "The primitive cost of any time: one reading of the clock.",
        taken: "Readings in a row, in batches.",
        misleads: "Readings overlap with other work when there is some.",
    },
    About {
        name: "system-call",
        what: "The primitive cost of anything the kernel does: entering and leaving it.",
        taken: "getppid by number, in batches on one CPU.",
        misleads: "It carries no mitigation that only some calls pay for.",
    },
    About {
        name: "cache-line-hop",
        what: "The primitive cost of any signal between two cores: a cache line that moves from \
            one to the other.",
        taken: "Two threads that answer each other through a line each; a batch of round trips \
            divided by twice their number.",
        misleads: "It belongs to the pair of CPUs it was taken on.",
    },
    About {
        name: "same-core-switch",
        what: "The primitive cost of a switch on one core.",
        taken: "Two threads that call sched_yield in turn; the time divided by the switches that \
            the kernel counted.",
        misleads: "Threads and not processes: no address space changes.",
    },
    About {
        name: "wake-nobody",
        what: "The primitive cost of notifying: a futex wake-up that finds nobody.",
        taken: "FUTEX_WAKE on a private word, in batches.",
        misleads: "Other mechanisms do more before they find that nobody waits.",
    },
    About {
        name: "two-core-wake",
        what: "The primitive cost of waking a sleeper on another core.",
        taken: "Two threads that wake each other by futex; a sample is from just before a wake-up \
            to the first instruction of one that had slept.",
        misleads: "The sleeper has only just fallen asleep: after longer sleeps wake-ups cost more.",
    },
];

/// A primitive cost that is not where it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    pub name: String,
    /// Its median in the earlier reading, nanoseconds.
    pub before_ns: f64,
    /// Its median in the later reading, nanoseconds.
    pub after_ns: f64,
}

impl Moved {
    /// The later reading as a multiple of the earlier.
    pub fn ratio(&self) -> f64 {
        self.after_ns / self.before_ns
    }
}

/// The primitive costs whose medians differ between two readings by
/// more than [`tolerance`], in the order of the first.
pub fn moved(before: &Primitives, after: &Primitives) -> Vec<Moved> {
    let mut moved = Vec::new();
    for earlier in &before.primitives {
        let Some(later) = after.primitives.iter().find(|later| later.name == earlier.name) else { continue };
        let change = Moved { name: earlier.name.clone(), before_ns: earlier.p50_ns, after_ns: later.p50_ns };
        let tolerance = tolerance(&change.name);
        // Written so that a median of zero, of which no ratio exists,
        // counts as moved: no reading of ours has one.
        if !(1.0 / tolerance..=tolerance).contains(&change.ratio()) {
            moved.push(change);
        }
    }
    moved
}

/// How far apart two medians of the same primitive cost may be, as a
/// ratio, before the machine counts as changed.
///
/// From readings in succession on a quiet virtual machine with two CPUs, where nine
/// in ten neighbours agreed within 1.23 (clock), 1.28 (system call), 1.27 (wake with
/// nobody waiting), 1.38 (same-core switch), 1.34 (two-core wake): even code that
/// touches neither memory nor kernel ran at different speeds within seconds. A
/// quieter machine stays far inside of it; blocks whose arms alternate bear as much.
pub fn tolerance(primitive: &str) -> f64 {
    match primitive {
        "clock" | "system-call" | "wake-nobody" => 1.3,
        _ => 1.4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::result::Primitive;

    fn reading(medians: &[(&str, f64)]) -> Primitives {
        let primitive = |(name, p50_ns): &(&str, f64)| Primitive {
            name: (*name).to_owned(),
            p50_ns: *p50_ns,
            min_ns: *p50_ns,
            count: 1,
        };
        Primitives { block: 0, at_unix_ns: 0, primitives: medians.iter().map(primitive).collect() }
    }

    #[test]
    fn a_primitive_moves_when_its_median_leaves_the_tolerance_in_either_direction() {
        let before = reading(&[("clock", 20.0), ("cache-line-hop", 70.0), ("only-here", 1.0)]);
        assert_eq!(moved(&before, &reading(&[("clock", 20.5), ("cache-line-hop", 75.0)])), []);
        let after = reading(&[("cache-line-hop", 140.0), ("clock", 10.0)]);
        let moved = moved(&before, &after);
        let names: Vec<&str> = moved.iter().map(|primitive| primitive.name.as_str()).collect();
        assert_eq!(names, ["clock", "cache-line-hop"]);
        assert_eq!(moved[1].ratio(), 2.0);
    }

    #[test]
    fn a_median_that_is_no_number_counts_as_moved() {
        let before = reading(&[("clock", 20.0)]);
        assert_eq!(moved(&before, &reading(&[("clock", f64::NAN)])).len(), 1);
        assert_eq!(moved(&before, &reading(&[("clock", 0.0)])).len(), 1);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no machine can do: rules that a record must satisfy before
//! its figures may stand in a table.
//!
//! Each rule is a name and a pure function of the record and what is known of the machine.
//! A rule that cannot be applied, because the primitive cost or the counter is not there,
//! is silent: a violation is a proof, not a suspicion. So a rule looks at half of the
//! samples or at their sum and never at the shortest alone, which is one reading of a clock
//! and would drop what is fastest; what a clock's grid and skew leave open counts for the
//! record. What is true and near to what the clock can tell is marked ([`near_the_clock`])
//! and kept. Adding a rule is adding a file here and one line in `RULES`.

use doorbell_results::about::About;
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::machine::clock_quality::ClockQuality;
use doorbell_results::record::result::Primitives;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Quantity, Record, SideCounters, Violation};

mod before_its_cause;
pub mod below_primitive_cost;
mod counts_disagree;
mod load_was_not_there;
mod longer_than_run;
mod near_the_clock;
mod never_slept;
mod not_from_the_device;
mod not_where_pinned;
mod poll_not_proven;
mod poll_took_interrupts;

pub use near_the_clock::near_the_clock;

/// What the rules need to know besides the record.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// All readings of the machine's primitive costs taken in the run so far.
    pub primitives: &'a [Primitives],
    /// The clock's step, nanoseconds; 0 where it is not known.
    pub clock_step_ns: f64,
    /// How far the clocks of two CPUs may be apart, nanoseconds; 0 where it is not known.
    pub skew_ns: f64,
}

impl<'a> Known<'a> {
    /// What a machine tells of its clock, and `primitives`.
    pub fn of(quality: Option<&ClockQuality>, primitives: &'a [Primitives]) -> Self {
        Self {
            primitives,
            clock_step_ns: quality.map_or(0.0, |quality| quality.grid_ps as f64 / 1000.0),
            skew_ns: quality.and_then(ClockQuality::worst_skew_ns).unwrap_or(0.0),
        }
    }

    /// How much longer than it reads a time of `quantity` in `record` may have been, nanoseconds: a
    /// step of the clock and, where two clocks were read, their skew.
    fn unsure_ns(&self, record: &Record, quantity: Quantity) -> f64 {
        self.clock_step_ns + if of_two_clocks(record, quantity) { self.skew_ns } else { 0.0 }
    }
}

/// Whether a time of `quantity` begins with a reading on one CPU and ends with one on another.
fn of_two_clocks(record: &Record, quantity: Quantity) -> bool {
    let one_cpu = record.configuration.placement.cpus.is_some_and(|[first, second]| first == second);
    !one_cpu && quantity.is_one_way()
}

/// A rule: its name and meaning, and its evidence against a record, one text for each breach.
struct Rule {
    about: About,
    evidence: fn(&Record, &Known) -> Vec<String>,
}

/// Every rule, in the order in which violations are reported. The one list to extend.
const RULES: [Rule; 10] = [
    below_primitive_cost::RULE,
    before_its_cause::RULE,
    longer_than_run::RULE,
    never_slept::RULE,
    poll_took_interrupts::RULE,
    not_where_pinned::RULE,
    counts_disagree::RULE,
    load_was_not_there::RULE,
    poll_not_proven::RULE,
    not_from_the_device::RULE,
];

pub fn rules() -> impl Iterator<Item = About> {
    RULES.iter().map(|rule| rule.about)
}

/// The rules that `record` breaks, with the values.
pub fn violations(record: &Record, known: &Known) -> Vec<Violation> {
    RULES
        .iter()
        .flat_map(|rule| {
            let broken = |evidence| Violation { rule: rule.about.name.to_owned(), evidence };
            (rule.evidence)(record, known).into_iter().map(broken)
        })
        .collect()
}

/// How the waiter really waits: the policy of the configuration, else what the mechanism does. None
/// for operations, tasks and transfers.
fn waits(record: &Record) -> Option<Waits> {
    match (record.subject.notification()?.waits, record.configuration.wait) {
        (Waits::Nothing, _) => Some(Waits::Nothing),
        (_, WaitPolicy::Spin) => Some(Waits::Spins),
        (waits, WaitPolicy::Block) => Some(waits),
        // Spins for a while, or wakes by the clock: neither surely sleeps nor surely polls.
        (_, WaitPolicy::SpinThenBlock { .. } | WaitPolicy::Timeout { .. }) => None,
    }
}

/// Sides that do nothing but wait, and how often: the far side, and
/// both where the near one does not pause.
fn waiting_sides(record: &Record) -> (impl Iterator<Item = &SideCounters>, u64) {
    let there_and_back = record.configuration.pattern.back_to_back();
    let skipped = usize::from(!there_and_back);
    (record.sides.iter().skip(skipped), record.tally.seen * if there_and_back { 2 } else { 1 })
}

#[cfg(test)]
mod tests;

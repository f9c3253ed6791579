// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no machine can do: rules that a record must satisfy before its figures may stand in a table.
//!
//! Each rule is a name and a pure function of the record and what is known of the machine. A rule that cannot be
//! applied, because the primitive cost or the counter is not there, is silent: a violation is a proof, not a suspicion. Adding a rule
//! is adding a file here and one line in `RULES`.

use doorbell_results::about::About;
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::record::result::Primitives;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Record, SideCounters, Violation};

mod before_its_cause;
pub mod below_primitive_cost;
mod clock_grid;
mod counts_disagree;
mod load_was_not_there;
mod longer_than_run;
mod never_slept;
mod not_from_the_device;
mod not_where_pinned;
mod poll_not_proven;
mod poll_took_interrupts;
#[cfg(test)]
mod sane;

/// What the rules need to know besides the record.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// All readings of the machine's primitive costs taken in the run so far.
    pub primitives: &'a [Primitives],
    /// The clock's step, nanoseconds; 0 where it is not known.
    pub clock_step_ns: f64,
}

/// A rule: its name and meaning, and its evidence against a record, one text for each breach.
struct Rule {
    about: About,
    evidence: fn(&Record, &Known) -> Vec<String>,
}

/// Every rule, in the order in which violations are reported. The one list to extend.
const RULES: [Rule; 11] = [
    below_primitive_cost::RULE,
    before_its_cause::RULE,
    longer_than_run::RULE,
    never_slept::RULE,
    poll_took_interrupts::RULE,
    clock_grid::RULE,
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

/// How the waiter really waits: the policy of the configuration, else what the mechanism does. None for operations, tasks and transfers.
fn waits(record: &Record) -> Option<Waits> {
    match (record.subject.notification()?.waits, record.configuration.wait) {
        (Waits::Nothing, _) => Some(Waits::Nothing),
        (_, WaitPolicy::Spin) => Some(Waits::Spins),
        (waits, WaitPolicy::Block) => Some(waits),
        // Spins for a while, or wakes by the clock: neither surely sleeps nor surely polls.
        (_, WaitPolicy::SpinThenBlock { .. } | WaitPolicy::Timeout { .. }) => None,
    }
}

/// Sides that do nothing but wait, and how often: the far side, and both where the near one does not pause.
fn waiting_sides(record: &Record) -> (impl Iterator<Item = &SideCounters>, u64) {
    let there_and_back = record.configuration.pattern.back_to_back();
    let skipped = usize::from(!there_and_back);
    (record.sides.iter().skip(skipped), record.tally.seen * if there_and_back { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::sane::{broken, sane};

    #[test]
    fn a_sane_record_breaks_no_rule() {
        let (record, primitives) = sane();
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
        assert_eq!(broken(&record, &[], 0.0), [""; 0]);
    }
}

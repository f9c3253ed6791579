// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called polling does not sleep. Interrupts are shown beside that and prove nothing.

use super::{Known, Rule, waiting_sides, waits};
use doorbell_results::about::About;
use doorbell_results::record::Record;
use doorbell_results::record::subject::Waits;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "poll-took-interrupts",
        what: "Waits that are called polling slept.",
        taken: "More than ten voluntary switches of the waiting sides and one for a hundred waits; \
            the rescheduling interrupts of their CPUs are shown beside them.",
        misleads: "Interrupts are counted for the CPU and not for the task: of those that come to \
            a waiter which never slept, all are meant for others, so that they alone prove nothing.",
    },
    evidence,
};

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let (sides, waits_made) = waiting_sides(record);
    if waits(record) != Some(Waits::Spins) || waits_made == 0 {
        return Vec::new();
    }
    let slept: u64 = sides.map(|side| side.voluntary_switches).sum();
    // A spinning side may still sleep now and then, in a page fault
    // or for the signal that ends the run.
    if slept <= 10 + waits_made / 100 {
        return Vec::new();
    }
    let rescheduled = record.environment.interrupts.get("RES").copied().unwrap_or(0);
    vec![format!(
        "{slept} voluntary switches and {rescheduled} rescheduling interrupts in {waits_made} \
         waits that are called polling"
    )]
}

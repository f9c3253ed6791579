// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called polling neither sleeps nor is interrupted.

use super::{Known, Rule, waiting_sides, waits};
use crate::about::About;
use crate::mechanism::Waits;
use crate::record::Record;

/// The rule.
pub(super) const RULE: Rule = Rule {
    about: About {
        name: "poll-took-interrupts",
        what: "Waits that are called polling slept, or were woken by interrupts.",
        taken: "Voluntary switches of the waiting sides beyond one for a hundred waits, or more than one rescheduling \
                interrupt for two.",
        misleads: "Interrupts are counted for the CPU and not for the task: a few of others are allowed for.",
    },
    evidence,
};

/// A waiter that polls neither sleeps nor needs an interrupt to be woken.
fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let (sides, waits_made) = waiting_sides(record);
    if waits(record) != Some(Waits::Spins) || waits_made == 0 {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    // A spinning side may still sleep now and then, in a page fault or for the signal that ends the run.
    let slept: u64 = sides.map(|side| side.voluntary_switches).sum();
    if slept > 10 + waits_made / 100 {
        evidence.push(format!("{slept} voluntary switches in {waits_made} waits that are called polling"));
    }
    // Rescheduling interrupts of other tasks on the same CPU are not ours; one for every second wait is.
    let rescheduled = record.surroundings.interrupts.get("RES").copied().unwrap_or(0);
    if rescheduled > 100 + waits_made / 2 {
        evidence.push(format!("{rescheduled} rescheduling interrupts in {waits_made} waits"));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::super::sane::{broken, only, sane};
    use crate::trial::cell::WaitPolicy;

    #[test]
    fn polling_that_sleeps_or_is_woken_by_interrupts_is_no_polling() {
        // fio accepted polled I/O on a device without poll queues and measured interrupts.
        let (mut record, floors) = sane();
        record.cell.wait = WaitPolicy::Spin;
        assert_eq!(broken(&record, &floors, 10.0), ["poll-took-interrupts"; 2]);
        record.sides.iter_mut().for_each(|side| side.voluntary_switches = 3);
        only("poll-took-interrupts", &record, &floors);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called blocked has slept.

use super::{Known, Rule, waiting_sides, waits};
use crate::about::About;
use crate::mechanism::Waits;
use crate::record::Record;
use crate::trial::cell::Timing;

/// The rule.
pub(super) const RULE: Rule = Rule {
    about: About {
        name: "never-slept",
        what: "Waits that are called blocked, or surely blocked, were no sleeps.",
        taken: "The kernel counts a voluntary switch for every sleep: fewer than one for a hundred waits that block, or \
                than nine for ten that are surely blocked, breaks the rule, and so do fewer than nine proofs for ten \
                notifications.",
        misleads: "A fast notifier finds the waiter awake now and then: that is no breach.",
    },
    evidence,
};

/// A wait that is called blocked has slept: the kernel counts a voluntary switch for each sleep.
fn evidence(record: &Record, _: &Known) -> Vec<String> {
    if waits(record) != Some(Waits::Blocks) || record.tally.seen == 0 {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    let (sides, waits) = waiting_sides(record);
    let slept: u64 = sides.map(|side| side.voluntary_switches).sum();
    // "Surely blocked" must be so for nearly all; otherwise a notification may come before the waiter is asleep, but
    // if that happened every time the record is not one of blocking.
    let (least, claim) =
        if record.cell.timing == Timing::Blocked { (0.9, "surely blocked") } else { (0.01, "blocking") };
    if !record.sides.is_empty() && (slept as f64) < waits as f64 * least {
        evidence.push(format!("{slept} voluntary switches in {waits} waits that are called {claim}"));
    }
    let (proven, sent) = (record.tally.proven_asleep, record.tally.sent);
    if record.cell.timing == Timing::Blocked && (proven as f64) < sent as f64 * 0.9 {
        evidence.push(format!("proven asleep before {proven} of {sent} notifications"));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::super::sane::{broken, only, sane};
    use crate::trial::cell::Timing;
    use crate::trial::cell::WaitPolicy;

    #[test]
    fn blocking_without_a_switch_never_slept() {
        let (mut record, floors) = sane();
        record.sides.iter_mut().for_each(|side| side.voluntary_switches = 2);
        only("never-slept", &record, &floors);
        // The same waits as polling are as they should be.
        record.cell.wait = WaitPolicy::Spin;
        record.surroundings.interrupts.clear();
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    #[test]
    fn surely_blocked_needs_proof_for_nearly_every_wake() {
        let (mut record, floors) = sane();
        record.cell.timing = Timing::Blocked;
        record.tally.proven_asleep = 950;
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
        record.tally.proven_asleep = 850;
        only("never-slept", &record, &floors);
    }
}

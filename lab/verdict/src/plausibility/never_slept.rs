// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is called blocked has slept.

use super::{Known, Rule, waiting_sides, waits};
use doorbell_results::about::About;
use doorbell_results::configuration::{Pattern, Timing};
use doorbell_results::figure::task::SWITCHES_COUNTED;
use doorbell_results::record::Record;
use doorbell_results::record::subject::{Subject, Waits};

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "never-slept",
        what: "Waits that are called blocked, or verified blocked, were no sleeps.",
        taken: "The kernel counts a voluntary switch for every sleep: fewer than one for a hundred \
            waits that block, or than nine for ten that are verified blocked, breaks the rule, and \
            so do fewer than nine proofs for ten notifications, and fewer than nine switches for \
            ten hand-offs between tasks that sleep, all on one CPU.",
        misleads: "A fast notifier finds the waiter awake now and then: that is no breach.",
    },
    evidence,
};

/// A wait that is called blocked has slept: the kernel counts a voluntary switch for each sleep.
fn evidence(record: &Record, _: &Known) -> Vec<String> {
    if record.configuration.pattern.tasks().is_some() {
        return handed_over_awake(record);
    }
    // What is due whatever became of the ones before may always be
    // there already: a waiter that cannot keep up need not sleep.
    let queues = matches!(record.configuration.pattern, Pattern::OpenLoop { .. });
    if waits(record) != Some(Waits::Blocks) || record.tally.seen == 0 || queues {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    let (sides, waits) = waiting_sides(record);
    let slept: u64 = sides.map(|side| side.voluntary_switches).sum();
    // "Surely blocked" must be so for nearly all; otherwise a notification may come before the waiter
    // is asleep, but if that happened every time the record is not one of blocking.
    let (least, claim) = if record.configuration.timing == Timing::Blocked {
        (0.9, "verified blocked")
    } else {
        (0.01, "blocking")
    };
    let counted = record.sides.iter().all(|side| !side.uncounted);
    if counted && !record.sides.is_empty() && (slept as f64) < waits as f64 * least {
        evidence.push(format!("{slept} voluntary switches in {waits} waits that are called {claim}"));
    }
    let (proven, sent) = (record.tally.proven_asleep, record.tally.sent);
    if record.configuration.timing == Timing::Blocked && (proven as f64) < sent as f64 * 0.9 {
        evidence.push(format!("proven asleep before {proven} of {sent} notifications"));
    }
    evidence
}

/// Tasks of one CPU that sleep while others have their turns were switched
/// away from once for each hand-off: no two of them can run at a time. On
/// two CPUs control may come back to a task before it has gone to sleep.
fn handed_over_awake(record: &Record) -> Vec<String> {
    if record.configuration.placement.cpus.is_none_or(|[first, second]| first != second) {
        return Vec::new();
    }
    let sleeps = matches!(record.subject, Subject::Tasks { sleeps: true, .. });
    let counted = record.figures.iter().find(|figure| figure.name == SWITCHES_COUNTED);
    let due = record.tally.sent as f64 * 0.9;
    match counted.filter(|figure| sleeps && figure.value < due) {
        Some(figure) => vec![format!("{} switches counted in {} hand-offs", figure.value, record.tally.sent)],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sane::{broken, only, sane};
    use doorbell_results::configuration::{Pattern, Timing, WaitPolicy};
    use doorbell_results::figure::task::SWITCHES_COUNTED;
    use doorbell_results::record::sample;

    #[test]
    fn blocking_without_a_switch_never_slept() {
        let (mut record, primitives) = sane();
        record.sides.iter_mut().for_each(|side| side.voluntary_switches = 2);
        only("never-slept", &record, &primitives);
        // What is due in an open loop may be there whenever the waiter looks.
        let pattern =
            std::mem::replace(&mut record.configuration.pattern, Pattern::OpenLoop { gap_ns: 1000 });
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
        record.configuration.pattern = pattern;
        // The same waits as polling are as they should be.
        record.configuration.wait = WaitPolicy::Spin;
        record.environment.interrupts.clear();
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
    }

    #[test]
    fn hand_offs_without_a_switch_of_tasks_that_sleep_never_slept() {
        let tasks = |subject: &str, cpus: [u32; 2], switches: f64| {
            let mut configuration = sample::configuration(subject);
            configuration.pattern = Pattern::Tasks { tasks: 10, yields: 100 };
            configuration.placement.cpus = Some(cpus);
            let mut record = sample::record(configuration, 0, 2_000.0);
            record.figures[0].name = SWITCHES_COUNTED.to_owned();
            record.figures[0].value = switches;
            record
        };
        assert_eq!(broken(&tasks("process-futex", [1, 1], 1_000.0), &[], 0.0), [""; 0]);
        only("never-slept", &tasks("process-futex", [1, 1], 800.0), &[]);
        // Two tasks that do not share a CPU may each find control back before they sleep.
        assert_eq!(broken(&tasks("process-futex", [0, 1], 800.0), &[], 0.0), [""; 0]);
        let by_the_kernel = tasks("thread-yield", [1, 1], 800.0);
        assert_eq!(broken(&by_the_kernel, &[], 0.0), [""; 0], "who is next is the kernel's to say");
    }

    #[test]
    fn surely_blocked_needs_proof_for_nearly_every_wake() {
        let (mut record, primitives) = sane();
        record.configuration.timing = Timing::Blocked;
        record.tally.proven_asleep = 950;
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
        record.tally.proven_asleep = 850;
        only("never-slept", &record, &primitives);
    }
}

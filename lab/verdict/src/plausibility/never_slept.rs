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

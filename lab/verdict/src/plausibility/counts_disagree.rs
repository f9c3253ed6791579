// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of the same notifications agree.

use super::{Known, Rule, waits};
use doorbell_results::about::About;
use doorbell_results::record::subject::{Subject, Waits};
use doorbell_results::record::{Quantity, Record};

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "counts-disagree",
        what: "What was sent, seen, lost and timed cannot be counts of the same notifications.",
        taken: "Both sides' sequence numbers and the number of samples. A loss is believed only of \
            a mechanism that drops: elsewhere one lost token would make every later one stand for \
            the message before its own. One object for all receivers of a fan-out passes some over \
            by its nature.",
        misleads: "It says that the count is wrong, not which.",
    },
    evidence,
};

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let tally = &record.tally;
    let mut evidence = Vec::new();
    if record.configuration.pattern.tasks().is_some() && tally.seen != tally.sent {
        evidence.push(format!("{} hand-offs were due and {} were counted", tally.sent, tally.seen));
    }
    if matches!(waits(record), Some(Waits::Nothing)) || !record.configuration.pattern.notifies() {
        return evidence;
    }
    if tally.seen > tally.sent + tally.duplicate {
        evidence
            .push(format!("{} seen of {} sent with {} duplicates", tally.seen, tally.sent, tally.duplicate));
    }
    if tally.proven_asleep > tally.sent {
        evidence.push(format!("{} proven asleep of {} sent", tally.proven_asleep, tally.sent));
    }
    if tally.sent > 0 && tally.seen == 0 {
        evidence.push(format!("nothing was seen of {} sent", tally.sent));
    }
    // Where tokens carry no number, one that was lost makes every
    // later one stand for the message before its own.
    let drops = match &record.subject {
        // Of an object that all share nobody is owed a post: whom it passes over is what is to be shown.
        Subject::FanOut { shared, .. } => *shared,
        subject => subject.notification().is_some_and(|notification| notification.drops),
    };
    if tally.lost > 0 && !drops {
        evidence.push(format!("{} lost by a mechanism that drops nothing", tally.lost));
    }
    for (quantity, most) in
        [(Quantity::RoundTrip, tally.seen), (Quantity::Notify, tally.sent), (Quantity::Response, tally.seen)]
    {
        if let Some(series) = record.series.get(&quantity).filter(|series| series.count > most) {
            evidence.push(format!("{} {} samples of {most} notifications", series.count, quantity.name()));
        }
    }
    evidence
}

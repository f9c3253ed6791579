// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of the same notifications agree.

use super::{Known, Rule, waits};
use doorbell_results::about::About;
use doorbell_results::record::Record;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{Subject, Waits};

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

/// What was sent, seen and timed are views of the same notifications.
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

#[cfg(test)]
mod tests {
    use super::super::sane::{broken, only, replace, sane};
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::sample;
    use doorbell_results::record::series::Quantity;

    #[test]
    fn hand_offs_of_another_number_than_due_disagree() {
        let mut record = sample::record(sample::configuration("stackless"), 0, 100.0);
        record.configuration.pattern = Pattern::Tasks { tasks: 10, yields: 100 };
        assert_eq!(broken(&record, &[], 0.0), [""; 0]);
        record.tally.seen -= 1;
        only("counts-disagree", &record, &[]);
    }

    #[test]
    fn more_seen_than_sent_disagrees() {
        let (mut record, primitives) = sane();
        record.tally.seen = record.tally.sent + 5;
        only("counts-disagree", &record, &primitives);
        record.tally.duplicate = 5;
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
    }

    /// One lost token once shifted every later stamp, and the figures stood in the table.
    #[test]
    fn a_loss_is_believed_only_of_mechanisms_that_drop() {
        let (mut record, primitives) = sane();
        record.tally.lost = 1;
        record.tally.seen -= 1;
        record.series.remove(&Quantity::RoundTrip);
        only("counts-disagree", &record, &primitives);
        record.configuration.subject = "udp".to_owned();
        record = sample::renamed(record);
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
    }

    /// A whole grid once showed no figure of the demonstration: each
    /// of its trials had been called impossible.
    #[test]
    fn receivers_that_share_one_object_may_go_without_and_others_may_not() {
        let (mut record, primitives) = sane();
        record.configuration.pattern = Pattern::FanOut { receivers: 20, interval_ns: 1_000_000 };
        record.configuration.subject = "sem-posix-for-all".to_owned();
        record = sample::renamed(record);
        record.series.clear();
        record.tally.lost = 1;
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
        record.configuration.subject = "sem-posix".to_owned();
        record = sample::renamed(record);
        only("counts-disagree", &record, &primitives);
    }

    #[test]
    fn a_trial_in_which_nothing_was_seen_disagrees() {
        let (mut record, primitives) = sane();
        record.configuration.subject = "udp".to_owned();
        record = sample::renamed(record);
        record.tally.lost = record.tally.sent;
        record.tally.seen = 0;
        record.series.clear();
        only("counts-disagree", &record, &primitives);
    }

    #[test]
    fn more_samples_than_notifications_disagree() {
        let (mut record, primitives) = sane();
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(8_000.0, 1001));
        only("counts-disagree", &record, &primitives);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups that never came: they took longer than any limit, for every verdict on a limit alike.

use doorbell_results::configuration::Pattern;
use doorbell_results::record::histogram::LONGEST_PS;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Histogram, Outcome, Record, Tally, Variant};

/// How much of a closed loop's time its gaps and wakes may leave unexplained: timers that are late, the notifier's own call.
const UNEXPLAINED: f64 = 0.1;

/// Wake-ups that never came, or too late to be one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// Notifications never seen.
    pub lost: u64,
    /// Seen only because a wait ran out.
    pub late: u64,
    /// Due in the time of a trial with gaps and never sent, by an estimate: something held the notifier up. How long wake-ups would have taken
    /// then nobody knows, so that these leave a verdict open and break nothing.
    pub unsent: u64,
}

impl Missed {
    /// Those of all usable trials of `variant`.
    pub fn of(variant: &Variant, quantity: Quantity) -> Self {
        variant.usable().map(|record| Self::in_trial(record, quantity)).fold(Self::default(), |sum, one| {
            Self {
                lost: sum.lost.saturating_add(one.lost),
                late: sum.late.saturating_add(one.late),
                unsent: sum.unsent.saturating_add(one.unsent),
            }
        })
    }

    fn in_trial(record: &Record, quantity: Quantity) -> Self {
        let unsent = || {
            let Pattern::OneWay { gap_ns } = record.configuration.pattern else { return None };
            let window_ns = record.configuration.until.time_ns.filter(|_| record.outcome == Outcome::Done)?;
            // Without a gap it is the notifier's own pace that decides how many are due.
            let gap_ns = (gap_ns > 0).then_some(gap_ns as f64)?;
            let call_ns = record.series.get(&Quantity::Notify).map_or(0.0, |call| call.mean_ns);
            let each_ns = gap_ns + call_ns + record.series.get(&quantity)?.mean_ns;
            let due = (window_ns as f64 * (1.0 - UNEXPLAINED) / each_ns) as u64;
            Some(due.saturating_sub(record.tally.sent))
        };
        Self { lost: record.tally.lost, late: record.tally.late, unsent: unsent().unwrap_or(0) }
    }

    /// All of them.
    pub fn all(self) -> u64 {
        self.lost.saturating_add(self.late).saturating_add(self.unsent)
    }

    /// "2 lost, 1 late, 3 due and never sent"; empty where there are none.
    pub fn told(self) -> String {
        let parts = [(self.lost, "lost"), (self.late, "late"), (self.unsent, "due and never sent")];
        let parts =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// The times of `quantity` in a trial, with those that never came as the longest there is; none where there are neither. One that came late
/// was timed too, and is among the longest: it counts once, as one that never came.
pub fn wakes(record: &Record, quantity: Quantity) -> Option<Histogram> {
    let timed = record.series.get(&quantity).and_then(|series| series.decode().ok());
    let Tally { lost, late, .. } = record.tally;
    if lost.saturating_add(late) == 0 {
        return timed;
    }
    let timed = timed.unwrap_or_default();
    let mut all = Histogram::new();
    let mut in_time = timed.count().saturating_sub(late);
    for (ps, count) in timed.buckets() {
        let count = count.min(in_time);
        all.record_many(ps, count);
        in_time -= count;
    }
    all.record_many(LONGEST_PS, lost.saturating_add(late));
    Some(all)
}

/// A limit in picoseconds. One that is longer than anything that is timed is as good as half of that: what never came took longer than
/// any limit.
pub fn limit_ps(limit_ns: u64) -> u64 {
    limit_ns.saturating_mul(1000).min(LONGEST_PS / 2)
}

/// Whether a time is that of a wake-up that never came: a histogram knows it to 0.1 %.
pub fn never_came(ps: u64) -> bool {
    ps >= LONGEST_PS - LONGEST_PS / 500
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups that never came: they took longer than any limit, for every verdict on a limit alike.

use doorbell_results::configuration::Pattern;
use doorbell_results::record::histogram::LONGEST_PS;
use doorbell_results::record::{Histogram, Quantity, Record, SideCounters, Tally, Variant};

/// A notifier that was held up for less than this share of its trial leaves no verdict open:
/// machines are never quite still.
const TOLERATED: f64 = 0.1;

/// Wake-ups that never came, or too late to be one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// Notifications never seen.
    pub lost: u64,
    /// Seen only because a wait ran out.
    pub late: u64,
    /// Due in the time for which something held the notifier of a closed loop up, and never sent.
    /// How long wake-ups would have taken then nobody knows, so that these leave a verdict open and
    /// break nothing.
    pub unsent: u64,
}

impl Missed {
    /// Those of all usable trials of `variant`.
    pub fn of(variant: &Variant) -> Self {
        variant.usable().map(Self::in_trial).fold(Self::default(), |sum, one| Self {
            lost: sum.lost.saturating_add(one.lost),
            late: sum.late.saturating_add(one.late),
            unsent: sum.unsent.saturating_add(one.unsent),
        })
    }

    fn in_trial(record: &Record) -> Self {
        // As many as it sent at its own pace: a timer is late by its slack each time, and no
        // machine is at fault for that.
        let unsent = || {
            let Pattern::OneWay { gap_ns } = record.configuration.pattern else { return None };
            let held_up = |side: &SideCounters| Some((side.window_ns, side.held_up_ns?));
            let (window_ns, held_up_ns) = record.sides.iter().find_map(held_up)?;
            let sent = record.tally.sent;
            let moved_ns = window_ns.saturating_sub(held_up_ns).max(gap_ns.saturating_mul(sent)).max(1);
            let due = sent as f64 * window_ns as f64 / moved_ns as f64;
            Some(((due * (1.0 - TOLERATED)) as u64).saturating_sub(sent))
        };
        Self { lost: record.tally.lost, late: record.tally.late, unsent: unsent().unwrap_or(0) }
    }

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

/// The times of `quantity` in a trial, with those that never came as the longest there is; none
/// where there are neither. One that came late was timed too, and is among the longest: it counts
/// once, as one that never came.
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

/// A limit in picoseconds. One that is longer than anything that is timed is as good as half of
/// that: what never came took longer than any limit.
pub fn limit_ps(limit_ns: u64) -> u64 {
    limit_ns.saturating_mul(1000).min(LONGEST_PS / 2)
}

/// Whether a time is that of a wake-up that never came: a histogram knows it to 0.1 %.
pub fn never_came(ps: u64) -> bool {
    ps >= LONGEST_PS - LONGEST_PS / 500
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::{Configuration, Until};
    use doorbell_results::record::{ResultFile, sample};

    /// A trial of a second with gaps of 100 µs, of which the notifier sent `sent` and was held up
    /// for so long.
    fn trial(sent: u64, held_up_ns: Option<u64>) -> ResultFile {
        let configuration = Configuration {
            pattern: Pattern::OneWay { gap_ns: 100_000 },
            until: Until { count: None, time_ns: Some(1_000_000_000) },
            ..sample::configuration("eventfd-epoll")
        };
        let mut result = sample::result(&[configuration], 1, |_, _| 8_000.0);
        let record = &mut result.records[0];
        (record.tally.sent, record.tally.seen) = (sent, sent);
        (record.sides[0].window_ns, record.sides[0].held_up_ns) = (1_000_000_000, held_up_ns);
        result
    }

    fn unsent(sent: u64, held_up_ns: Option<u64>) -> u64 {
        Missed::of(&trial(sent, held_up_ns).variants()[0]).unsent
    }

    /// "1,487 due and never sent", of an idle machine: on the waiter's core the notifier sleeps
    /// through its gap, which the kernel makes longer by the timer slack of 50 µs each time.
    #[test]
    fn a_notifier_whose_timer_is_late_each_time_was_held_up_by_nothing() {
        assert_eq!(unsent(6_100, Some(0)), 0);
        assert_eq!(unsent(6_100, Some(50_000_000)), 0, "what any machine does now and then");
    }

    #[test]
    fn what_was_due_while_the_notifier_was_held_up_is_counted_at_its_own_pace() {
        let unsent = unsent(3_000, Some(500_000_000));
        assert!((2_390..=2_400).contains(&unsent), "{unsent} of 3,000 due in half a second");
    }

    #[test]
    fn where_nobody_looked_whether_the_notifier_was_held_up_nothing_is_made_up() {
        assert_eq!(unsent(1_000, None), 0);
    }
}

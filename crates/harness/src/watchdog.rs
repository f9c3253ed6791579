// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a trial hangs: nobody goes on for longer than anybody may wait.
//!
//! Only waiting counts. What the host itself does meanwhile takes none of that time, nor does a machine that stands still, on
//! which those who are watched cannot move either. A side that makes its report computes and waits for nobody: it has more time
//! than others, but not for ever, as it may have been stopped.

use std::time::{Duration, Instant};

/// The most that counts from one look to the next, which is to be taken once a second. A look that came later than that was held up,
/// by programs of a higher priority or by whoever stopped the machine.
const COUNTS: Duration = Duration::from_secs(2);

/// Looks where everybody is, again and again.
#[derive(Debug)]
pub(super) struct Watchdog<Place> {
    patience: Duration,
    report: Duration,
    seen: Place,
    /// How long nobody has moved, as far as it counts.
    still: Duration,
    looked: Instant,
}

impl<Place: PartialEq> Watchdog<Place> {
    /// Begins to watch those who are at `seen`; they hang when they have not moved for longer than `patience`, and `report`
    /// on top while one of them makes its report.
    pub(super) fn new(patience: Duration, report: Duration, seen: Place, now: Instant) -> Self {
        Self { patience, report, seen, still: Duration::ZERO, looked: now }
    }

    /// Up to now nobody was to move, or somebody was heard.
    pub(super) fn calm(&mut self, now: Instant) {
        (self.still, self.looked) = (Duration::ZERO, now);
    }

    /// Since the last look one of them wanted a CPU and had next to none: a tenth of that time counts. None would let a side that
    /// spins for what never comes keep its trial for ever, where others leave it no more.
    pub(super) fn starved(&mut self, now: Instant) {
        self.still += (now - self.looked).min(COUNTS) / 10;
        self.looked = now;
    }

    /// Whether those who are at `place` now, one of them making its report if `reports`, have been there for too long.
    pub(super) fn hangs(&mut self, place: Place, reports: bool, now: Instant) -> bool {
        if place == self.seen {
            self.still += (now - self.looked).min(COUNTS);
        } else {
            (self.seen, self.still) = (place, Duration::ZERO);
        }
        self.looked = now;
        let report = if reports { self.report } else { Duration::ZERO };
        self.still > self.patience + report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);
    const REPORT: Duration = Duration::from_secs(20);
    const LOOK: Duration = Duration::from_secs(1);

    /// Looks once a second for `seconds`; whether it was a hang in the end, and not before.
    fn hangs_after(seconds: u32, mut seen_at: impl FnMut(&mut Watchdog<u32>, u32, Instant) -> bool) -> bool {
        let start = Instant::now();
        let mut watchdog = Watchdog::new(PATIENCE, REPORT, 0, start);
        for second in 1..seconds {
            assert!(!seen_at(&mut watchdog, second, start + LOOK * second), "after {second} s");
        }
        seen_at(&mut watchdog, seconds, start + LOOK * seconds)
    }

    #[test]
    fn who_does_not_move_hangs_once_patience_has_run_out_and_who_moves_never_does() {
        assert!(hangs_after(6, |watchdog, _, now| watchdog.hangs(0, false, now)));
        assert!(!hangs_after(100, |watchdog, second, now| watchdog.hangs(second / 5, false, now)));
    }

    /// Programs of real-time priority kept the host and both sides from their CPUs, and the trial was called hung.
    #[test]
    fn a_machine_that_stands_still_for_a_minute_makes_nobody_hang() {
        let start = Instant::now();
        let mut watchdog = Watchdog::new(PATIENCE, REPORT, 0, start);
        for minute in 1..3 {
            assert!(!watchdog.hangs(0, false, start + Duration::from_secs(60) * minute));
        }
    }

    #[test]
    fn who_gets_no_cpu_hangs_ten_times_later() {
        let starved = |watchdog: &mut Watchdog<u32>, _, now| {
            watchdog.starved(now);
            watchdog.hangs(0, false, now)
        };
        assert!(hangs_after(51, starved));
    }

    /// In an emulated machine both sides had finished, and were called hung while they compressed their histograms. Once
    /// that time did not count, a side that was stopped while it reported would have kept its trial for ever.
    #[test]
    fn who_reports_may_take_long_but_not_for_ever() {
        assert!(hangs_after(26, |watchdog, _, now| watchdog.hangs(0, true, now)));
    }

    #[test]
    fn time_in_which_nobody_was_to_move_does_not_count() {
        let calm_until = |last: u32| {
            move |watchdog: &mut Watchdog<u32>, second, now| {
                if second <= last {
                    watchdog.calm(now);
                }
                watchdog.hangs(0, false, now)
            }
        };
        assert!(!hangs_after(100, calm_until(100)));
        assert!(hangs_after(26, calm_until(20)));
    }
}

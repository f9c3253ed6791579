// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a trial hangs: nobody goes on for longer than anybody may wait.
//!
//! Only waiting counts. What the host itself does meanwhile takes none of that
//! time, nor does a machine that stands still, on which those who are watched
//! cannot move either. A side that makes its report computes and waits for nobody:
//! it has more time than others, but not for ever, as it may have been stopped.
//!
//! Once the user wants an end, they are not waited for so long, nor told apart from those who get
//! no CPU: nothing is measured any more, and whoever can move ends. What does not is no hang that
//! could be held against what was measured.

use std::time::{Duration, Instant};

use super::order::Report;
use doorbell_results::record::LastSeen;

/// The most that counts from one look to the next, which is to be
/// taken once a second. A look that came later than that was held up,
/// by programs of a higher priority or by whoever stopped the machine.
const COUNTS: Duration = Duration::from_secs(2);

/// For longer than this and a gap nobody stands still who was interrupted and is to end: two looks,
/// as one may count as much.
const ENDING: Duration = COUNTS;

/// Looks where everybody is, again and again.
#[derive(Debug)]
pub(super) struct Watchdog<Place> {
    patience: Duration,
    report: Duration,
    seen: Place,
    /// How long nobody has moved, as far as it counts.
    still: Duration,
    /// The same once the user has interrupted, and how long that may be.
    ending: Option<(Duration, Duration)>,
    looked: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Look<Place> {
    pub(super) place: Place,
    pub(super) reports: bool,
    /// Whether one of them wanted a CPU since the last look and had next to none.
    pub(super) starves: bool,
}

/// What a look says of those who are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    GoesOn,
    Hangs,
    /// They were to end, and have not moved for so long.
    DoesNotEnd(Duration),
}

impl Found {
    /// What the trial came to, of those who were last seen there; none of one that goes on.
    pub(super) fn report(self, last_seen: impl FnOnce() -> Vec<LastSeen>) -> Option<Report> {
        match self {
            Self::GoesOn => None,
            Self::Hangs => Some(Report::Hung { last_seen: last_seen(), at: None }),
            Self::DoesNotEnd(still) => {
                let seen: Vec<String> = last_seen().iter().map(ToString::to_string).collect();
                let seen = seen.join(", ");
                let cause = format!("interrupted, and nobody moved for {still:?} then: {seen}");
                Some(Report::Failed { cause, at: None })
            }
        }
    }
}

impl<Place: PartialEq> Watchdog<Place> {
    /// Begins to watch those who are at `seen`; they hang when they have not moved for longer than
    /// `patience`, and `report` on top while one of them makes its report.
    pub(super) fn new(patience: Duration, report: Duration, seen: Place, now: Instant) -> Self {
        Self { patience, report, seen, still: Duration::ZERO, ending: None, looked: now }
    }

    /// Up to now nobody was to move, or somebody was heard.
    pub(super) fn calm(&mut self, now: Instant) {
        self.moved();
        self.looked = now;
    }

    /// They were told to end, which they hear after a `gap` at the latest.
    pub(super) fn interrupted(&mut self, gap: Duration) {
        self.ending = Some((Duration::ZERO, ENDING + gap));
    }

    fn moved(&mut self) {
        self.still = Duration::ZERO;
        if let Some((still, _)) = &mut self.ending {
            *still = Duration::ZERO;
        }
    }

    /// What `look`, taken `now`, says of them.
    pub(super) fn look(&mut self, look: Look<Place>, now: Instant) -> Found {
        let passed = (now - self.looked).min(COUNTS);
        self.looked = now;
        if look.place == self.seen {
            // None of it would let a side that spins for what never comes keep its trial for ever,
            // where others leave it no more.
            self.still += if look.starves { passed / 10 } else { passed };
            if let Some((still, _)) = &mut self.ending {
                *still += passed;
            }
        } else {
            self.seen = look.place;
            self.moved();
        }
        let report = if look.reports { self.report } else { Duration::ZERO };
        if self.still > self.patience + report {
            return Found::Hangs;
        }
        match self.ending {
            Some((still, patience)) if still > patience + report => Found::DoesNotEnd(patience),
            _ => Found::GoesOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);
    const REPORT: Duration = Duration::from_secs(20);
    const GAP: Duration = Duration::from_secs(3);
    const LOOK: Duration = Duration::from_secs(1);

    fn at(place: u32) -> Look<u32> {
        Look { place, reports: false, starves: false }
    }

    fn watchdog(start: Instant) -> Watchdog<u32> {
        Watchdog::new(PATIENCE, REPORT, 0, start)
    }

    /// Looks once a second for `seconds`; what was found in the end, and nothing before.
    fn found_after(
        seconds: u32,
        mut seen_at: impl FnMut(&mut Watchdog<u32>, u32, Instant) -> Look<u32>,
    ) -> Found {
        let start = Instant::now();
        let mut watchdog = watchdog(start);
        let mut found = Found::GoesOn;
        for second in 1..=seconds {
            assert_eq!(found, Found::GoesOn, "before {second} s");
            let now = start + LOOK * second;
            let look = seen_at(&mut watchdog, second, now);
            found = watchdog.look(look, now);
        }
        found
    }

    #[test]
    fn who_does_not_move_hangs_once_patience_has_run_out_and_who_moves_never_does() {
        assert_eq!(found_after(6, |_, _, _| at(0)), Found::Hangs);
        assert_eq!(found_after(100, |_, second, _| at(second / 5)), Found::GoesOn);
    }

    /// Programs of real-time priority kept the host and both sides
    /// from their CPUs, and the trial was called hung.
    #[test]
    fn a_machine_that_stands_still_for_a_minute_makes_nobody_hang() {
        let start = Instant::now();
        let mut watchdog = watchdog(start);
        for minute in 1..3 {
            assert_eq!(watchdog.look(at(0), start + Duration::from_secs(60) * minute), Found::GoesOn);
        }
    }

    const STARVES: Look<u32> = Look { place: 0, reports: false, starves: true };

    #[test]
    fn who_gets_no_cpu_hangs_ten_times_later() {
        assert_eq!(found_after(51, |_, _, _| STARVES), Found::Hangs);
    }

    /// In an emulated machine both sides had finished, and were called hung while they compressed
    /// their histograms. Once that time did not count, a side that was stopped while it
    /// reported would have kept its trial for ever.
    #[test]
    fn who_reports_may_take_long_but_not_for_ever() {
        let reports = Look { reports: true, ..at(0) };
        assert_eq!(found_after(26, |_, _, _| reports), Found::Hangs);
        let interrupted = |watchdog: &mut Watchdog<u32>, second, _| {
            if second == 1 {
                watchdog.interrupted(Duration::ZERO);
            }
            reports
        };
        assert_eq!(found_after(23, interrupted), Found::DoesNotEnd(ENDING));
    }

    #[test]
    fn time_in_which_nobody_was_to_move_does_not_count() {
        let calm_until = |last: u32| {
            move |watchdog: &mut Watchdog<u32>, second, now| {
                if second <= last {
                    watchdog.calm(now);
                }
                at(0)
            }
        };
        assert_eq!(found_after(100, calm_until(100)), Found::GoesOn);
        assert_eq!(found_after(26, calm_until(20)), Found::Hangs);
    }

    /// `look`, and an interrupt before the one of second 11, from when on others sleep for `gap`.
    fn interrupted(
        gap: Duration,
        look: Look<u32>,
    ) -> impl FnMut(&mut Watchdog<u32>, u32, Instant) -> Look<u32> {
        move |watchdog, second, _| {
            if second == 11 {
                watchdog.interrupted(gap);
            }
            look
        }
    }

    /// Beside others that wanted the CPUs, a side that spun for what never came kept its trial for
    /// 48 s, and an interrupt did not help.
    #[test]
    fn who_was_interrupted_and_does_not_move_is_waited_for_no_longer_whatever_keeps_it() {
        assert_eq!(found_after(13, interrupted(Duration::ZERO, STARVES)), Found::DoesNotEnd(ENDING));
        let found = found_after(16, interrupted(GAP, STARVES));
        assert_eq!(found, Found::DoesNotEnd(ENDING + GAP), "it may have slept until its next notification");
    }

    #[test]
    fn who_was_interrupted_and_hangs_as_long_as_without_hangs() {
        assert_eq!(
            found_after(6, |watchdog, second, _| {
                if second == 5 {
                    watchdog.interrupted(Duration::ZERO);
                }
                at(0)
            }),
            Found::Hangs
        );
    }

    #[test]
    fn who_was_interrupted_and_moves_has_its_time_and_so_has_a_machine_that_stands_still() {
        let start = Instant::now();
        let mut watchdog = watchdog(start);
        watchdog.interrupted(Duration::ZERO);
        let mut now = start;
        for second in 1..100 {
            now += LOOK * if second % 2 == 0 { 1 } else { 60 };
            assert_eq!(
                watchdog.look(Look { starves: true, ..at(second / 2) }, now),
                Found::GoesOn,
                "{second}"
            );
        }
        now += LOOK * 60;
        assert_eq!(watchdog.look(Look { starves: true, ..at(50) }, now), Found::GoesOn);
    }
}

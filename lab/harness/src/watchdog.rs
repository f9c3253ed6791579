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

    /// Whom nothing keeps, who gets no CPU, and who makes its report.
    const STILL: Look<u32> = Look { place: 0, reports: false, starves: false };
    const STARVES: Look<u32> = Look { starves: true, ..STILL };
    const REPORTS: Look<u32> = Look { reports: true, ..STILL };

    /// Looks once a second for `seconds`: up to second `calm` nobody is to move, and before the look of
    /// second `interrupted` the user interrupts those who may sleep for a gap. What was found in the
    /// end, and nothing before.
    fn found_after(
        seconds: u32,
        look: impl Fn(u32) -> Look<u32>,
        calm: u32,
        interrupted: Option<(u32, Duration)>,
    ) -> Found {
        let start = Instant::now();
        let mut watchdog = Watchdog::new(PATIENCE, REPORT, 0, start);
        let mut found = Found::GoesOn;
        for second in 1..=seconds {
            assert_eq!(found, Found::GoesOn, "before {second} s");
            let now = start + LOOK * second;
            if second <= calm {
                watchdog.calm(now);
            }
            if let Some((_, gap)) = interrupted.filter(|(at, _)| *at == second) {
                watchdog.interrupted(gap);
            }
            found = watchdog.look(look(second), now);
        }
        found
    }

    #[test]
    fn who_moves_never_hangs_nor_who_is_not_to_move() {
        let moves = |second| Look { place: second / 5, ..STILL };
        assert_eq!(found_after(100, moves, 0, None), Found::GoesOn);
        assert_eq!(found_after(100, |_| STILL, 100, None), Found::GoesOn);
    }

    /// In an emulated machine both sides had finished, and were called hung while they compressed
    /// their histograms; had that time not counted, a side that was stopped while it reported would
    /// have kept its trial for ever. Beside others that wanted the CPUs, a side that spun for what
    /// never came kept its trial for 48 s, and an interrupt did not help.
    #[test]
    fn who_does_not_move_hangs_or_does_not_end_once_patience_with_it_has_run_out() {
        let none = Duration::ZERO;
        for (what, seconds, look, calm, interrupted, found) in [
            ("nothing keeps it", 6, STILL, 0, None, Found::Hangs),
            ("it gets no CPU: ten times later", 51, STARVES, 0, None, Found::Hangs),
            ("it reports: long, but not for ever", 26, REPORTS, 0, None, Found::Hangs),
            ("and once it is to end", 23, REPORTS, 0, Some((1, none)), Found::DoesNotEnd(ENDING)),
            ("it was not to move before", 26, STILL, 20, None, Found::Hangs),
            ("interrupted, whatever keeps it", 13, STARVES, 0, Some((11, none)), Found::DoesNotEnd(ENDING)),
            ("it may sleep for a gap", 16, STARVES, 0, Some((11, GAP)), Found::DoesNotEnd(ENDING + GAP)),
            ("as long as without an interrupt", 6, STILL, 0, Some((5, none)), Found::Hangs),
        ] {
            assert_eq!(found_after(seconds, |_| look, calm, interrupted), found, "{what}");
        }
    }

    /// Programs of real-time priority kept the host and both sides
    /// from their CPUs, and the trial was called hung.
    #[test]
    fn a_machine_that_stands_still_for_a_minute_makes_nobody_hang() {
        let start = Instant::now();
        let mut watchdog = Watchdog::new(PATIENCE, REPORT, 0, start);
        for minute in 1..3 {
            assert_eq!(watchdog.look(STILL, start + Duration::from_secs(60) * minute), Found::GoesOn);
        }
    }

    #[test]
    fn who_was_interrupted_and_moves_has_its_time_and_so_has_a_machine_that_stands_still() {
        let start = Instant::now();
        let mut watchdog = Watchdog::new(PATIENCE, REPORT, 0, start);
        watchdog.interrupted(Duration::ZERO);
        let mut now = start;
        for second in 1..100 {
            now += LOOK * if second % 2 == 0 { 1 } else { 60 };
            let look = Look { place: second / 2, ..STARVES };
            assert_eq!(watchdog.look(look, now), Found::GoesOn, "{second}");
        }
        assert_eq!(watchdog.look(Look { place: 50, ..STARVES }, now + LOOK * 60), Found::GoesOn);
    }
}

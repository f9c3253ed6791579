// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the next message will come, of one who sends at a steady pace.
//!
//! A sleeper is awake some tens of microseconds after its message came; one that spins sees it at
//! once, and takes a CPU for the whole step. Where steps are alike neither is needed: sleep until
//! shortly before the next is due, and spin for a short while.

use std::time::{Duration, Instant};

/// A spin may take at most this part of a step, before and after the
/// moment at which the message is due.
const MOST_OF_A_STEP: f64 = 0.04;
/// Steps shorter than this are the bell's, which spins for them if that pays.
const SHORTEST: f64 = 200e-6;
/// How much a new step counts against those before.
const WEIGHT: f64 = 0.125;

/// What the steps so far say of the next. All in seconds.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// When the last message came, if the caller waited for it.
    last: Option<Instant>,
    step: f64,
    /// How far steps are from the usual one.
    spread: f64,
    /// How much later than asked for a sleep ends.
    late: f64,
}

/// When to spin for the next message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Until then the caller sleeps.
    pub(crate) sleep_until: Instant,
    pub(crate) spin_until: Instant,
}

impl Steps {
    /// A message came while the caller waited for it.
    pub(crate) fn came(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            let step = now.duration_since(last).as_secs_f64();
            if self.step == 0.0 || step > 3.0 * self.step || step < self.step / 3.0 {
                // Another pace: it is learned anew, from what is sure.
                (self.step, self.spread) = (step, step);
            } else {
                self.spread += WEIGHT * ((step - self.step).abs() - self.spread);
                self.step += WEIGHT * (step - self.step);
            }
        }
    }

    /// A message was there before the caller asked: nobody knows since when.
    pub(crate) fn was_there(&mut self) {
        self.last = None;
    }

    /// A sleep that was to end at `asked` has ended.
    pub(crate) fn slept_until(&mut self, asked: Instant, now: Instant) {
        let late = now.saturating_duration_since(asked).as_secs_f64();
        // One that was kept from its CPU says nothing of the next.
        if late < MOST_OF_A_STEP * self.step {
            self.late += WEIGHT * (late - self.late);
        }
    }

    /// When to spin for the next message, if that pays: if the steps
    /// are alike enough for a short spin to meet it.
    pub(crate) fn window(&self) -> Option<Window> {
        let half = (3.0 * self.spread).clamp(20e-6, f64::MAX).min(MOST_OF_A_STEP * self.step);
        if self.step < SHORTEST || half < self.spread {
            return None;
        }
        let due = self.last? + Duration::from_secs_f64(self.step);
        let sleep_until = due.checked_sub(Duration::from_secs_f64(half + self.late))?;
        Some(Window { sleep_until, spin_until: due + Duration::from_secs_f64(half) })
    }
}

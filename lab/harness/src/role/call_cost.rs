// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time of the notifier's call, of a sample of its calls.

use doorbell_results::machine::clock::{Clock, Ticks};

use crate::task;

/// One call in so many, for a reading is a system call of some 0.3 µs on either side of it.
const ONE_IN: u64 = 16;
/// One call in so many where gaps are [`LONG_NS`] or longer, and calls few.
const ONE_IN_FEW: u64 = 4;
const LONG_NS: u64 = 1_000_000;

/// How many rows of how many readings say what one takes.
const ROWS: [u64; 2] = [8, 16];

/// What the calls looked at took of the CPU.
///
/// A call that is preempted takes as long as whoever runs meanwhile, milliseconds of which none is
/// its own. So a call counts what the thread's CPU clock says, and no more than it lasted: of a
/// call that nothing interrupts the two readings beside it take a tenth, which is not in the
/// time that it lasted.
#[derive(Debug)]
pub(super) struct CallCost {
    every: u64,
    reading_ns: u64,
    spent_ns: u64,
    calls: u64,
}

/// A call that is looked at.
#[derive(Debug)]
pub(super) struct Looked(u64);

impl CallCost {
    pub(super) fn of_gap(gap_ns: u64) -> Self {
        let [rows, readings] = ROWS;
        let row = || {
            let before = task::cpu_ns();
            (1..readings).for_each(|_| {
                std::hint::black_box(task::cpu_ns());
            });
            task::cpu_ns().saturating_sub(before) / readings
        };
        let reading_ns = (0..rows).map(|_| row()).min().unwrap_or(0);
        let every = if gap_ns < LONG_NS { ONE_IN } else { ONE_IN_FEW };
        Self { every, reading_ns, spent_ns: 0, calls: 0 }
    }

    pub(super) fn clear(&mut self) {
        (self.spent_ns, self.calls) = (0, 0);
    }

    /// Whether the call that follows `calls` others is looked at: the first is.
    pub(super) fn looks_at(&self, calls: u64) -> bool {
        calls.is_multiple_of(self.every)
    }

    /// How much earlier a notifier that has a time to keep must be
    /// ready for a call that is looked at.
    pub(super) fn lead(&self, clock: Clock) -> Ticks {
        clock.ticks(std::time::Duration::from_nanos(2 * self.reading_ns))
    }

    #[inline]
    pub(super) fn begin() -> Looked {
        Looked(task::cpu_ns())
    }

    /// The call has returned, `lasted_ns` after it was entered.
    #[inline]
    pub(super) fn end(&mut self, looked: &Looked, lasted_ns: u64) {
        self.note(task::cpu_ns().saturating_sub(looked.0), lasted_ns);
    }

    /// A call during which the CPU clock went on by `used_ns`, a reading included.
    fn note(&mut self, used_ns: u64, lasted_ns: u64) {
        self.spent_ns += used_ns.saturating_sub(self.reading_ns).min(lasted_ns);
        self.calls += 1;
    }

    /// The mean, nanoseconds; none where no call was looked at.
    pub(super) fn mean_ns(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.spent_ns as f64 / self.calls as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a busy machine a call's mean was several times what it took, one in a hundred having lost
    /// its CPU for milliseconds.
    #[test]
    fn a_preempted_call_costs_what_it_used_and_any_other_what_it_lasted() {
        let mut cost = CallCost { every: ONE_IN, reading_ns: 400, spent_ns: 0, calls: 0 };
        assert_eq!(cost.mean_ns(), None);
        for _ in 0..3 {
            cost.note(5_900, 5_000);
        }
        cost.note(5_400, 4_000_000);
        assert_eq!(cost.mean_ns(), Some(5_000.0));
        cost.clear();
        assert_eq!(cost.mean_ns(), None);
    }

    #[test]
    fn few_calls_are_looked_at_and_the_first_of_a_trial_is_one() {
        for (gap_ns, looks) in [(50_000, 4), (10_000_000, 16)] {
            let cost = CallCost::of_gap(gap_ns);
            let looked = (0..64).filter(|calls| cost.looks_at(*calls)).count();
            assert_eq!(looked, looks);
            assert!(cost.looks_at(0));
        }
    }
}

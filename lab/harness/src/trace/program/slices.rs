// SPDX-License-Identifier: MIT OR Apache-2.0
//! When to record, if a share of the time is enough: a slice somewhere in each period.

use std::time::Duration;

/// How long a slice is: longer than most waits, of which those are not seen that it cuts.
const SLICE: Duration = Duration::from_millis(200);
/// So many slices there are in a recording of known length, or shorter ones.
const FEWEST: f64 = 5.0;
/// But none is shorter: programs in the kernel are taken off and put on between two.
const SHORTEST: Duration = Duration::from_millis(20);

/// A share of the time, in slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slices {
    /// How long the first is; each further one is twice as long, up to `slice`.
    first: Duration,
    slice: Duration,
    share: f64,
    seed: u64,
}

impl Slices {
    /// For the share `share`, above 0 and at most 1, of a recording
    /// of the length `time`, if that is known.
    pub(super) fn new(share: f64, time: Option<Duration>, seed: u64) -> Self {
        let share = share.clamp(1e-6, 1.0);
        // Nobody knows how soon a command ends: something of it is to be recorded.
        let [first, slice] =
            time.map_or([SHORTEST, SLICE], |time| [SLICE.min(time.mul_f64(share / FEWEST)).max(SHORTEST); 2]);
        Self { first, slice, share, seed }
    }

    /// Whether to record at `at`, and when that changes.
    pub(super) fn at(&self, at: Duration) -> (bool, Duration) {
        let (mut number, mut begins, mut slice) = (0, Duration::ZERO, self.first);
        let period = |slice: Duration| slice.div_f64(self.share);
        while slice < self.slice && at >= begins + period(slice) {
            begins += period(slice);
            (number, slice) = (number + 1, self.slice.min(2 * slice));
        }
        let period = period(slice);
        let further = (at.saturating_sub(begins).as_nanos() / period.as_nanos().max(1)) as u64;
        (number, begins) = (number + further, begins + period.mul_f64(further as f64));
        // Wherever chance has it: what the program does at intervals is not to meet it always, or never.
        let chance = fastrand::Rng::with_seed(self.seed ^ number.rotate_left(32)).f64();
        let from = begins + period.saturating_sub(slice).mul_f64(chance);
        let to = from + slice;
        match () {
            () if at < from => (false, from),
            () if at < to => (true, to),
            () => (false, begins + period),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of `time` for which it records, and how often it begins to.
    fn goes(slices: Slices, time: Duration) -> (f64, u32) {
        let (mut at, mut on, mut begun) = (Duration::ZERO, Duration::ZERO, 0);
        while at < time {
            let (records, until) = slices.at(at);
            // By a nanosecond a product may be on the wrong side.
            let until = until.max(at + Duration::from_nanos(1)).min(time);
            if records {
                on += until - at;
                begun += 1;
            }
            at = until;
        }
        (on.as_secs_f64() / time.as_secs_f64(), begun)
    }

    #[test]
    fn a_share_of_the_time_is_recorded_in_slices_that_are_not_at_equal_intervals() {
        let slices = Slices::new(0.1, None, 7);
        let (share, begun) = goes(slices, Duration::from_secs(200));
        assert!((share - 0.1).abs() < 0.001 && (102..=104).contains(&begun), "{share} {begun}");
        // The first four are shorter, and their periods are 3 s together.
        let begins = |period: u64| slices.at(Duration::from_millis(3000 + 2000 * period + 1)).1;
        assert_ne!(begins(0) + Duration::from_secs(2), begins(1));
        assert!((goes(Slices::new(1.0, None, 7), Duration::from_secs(10)).0 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn of_a_command_that_ends_soon_something_is_recorded() {
        for seed in 0..100 {
            let (share, begun) = goes(Slices::new(0.1, None, seed), Duration::from_millis(600));
            assert!(begun >= 2 && (0.08..=0.12).contains(&share), "{seed}: {share} {begun}");
        }
    }

    #[test]
    fn short_recordings_have_slices_too() {
        let time = Duration::from_secs(2);
        let (share, begun) = goes(Slices::new(0.1, Some(time), 1), time);
        assert!((share - 0.1).abs() < 0.001 && begun == 5, "{share} {begun}");
        assert_eq!(Slices::new(0.1, Some(Duration::ZERO), 1).slice, SHORTEST);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a trial: the processor's own counter where the kernel
//! itself goes by it, else the monotonic clock.
//!
//! Times are ticks of a counter, differences are picoseconds in integers. No absolute time is ever
//! a floating-point number: added up in a `double`, today's epoch leaves a grid of 256 ns.

use crate::system;
pub use crate::system::monotonic_ns;
use doorbell_results::machine::clock::*;
use std::time::Duration;

use crate::counter;

/// The best clock here: the processor's counter if it runs at one speed and the kernel itself uses
/// it, calibrated against `CLOCK_MONOTONIC_RAW` over `window`; else the monotonic clock.
///
/// The kernel keeps `tsc` as its clock source only while its watchdog finds the counters of all
/// CPUs in step, which is why its choice is taken as the proof that ours may be compared across
/// cores. The counters of ARM and RISC-V are one for all CPUs by their manuals; where one is not,
/// the kernel takes another, and so do we.
pub fn calibrate(window: Duration) -> Clock {
    if !counter::is_invariant() || !system::trusts_counter(counter::KERNELS_NAME) {
        return Clock::MONOTONIC;
    }
    let (raw_0, count_0) = raw_and_count();
    std::thread::sleep(window);
    let (raw_1, count_1) = raw_and_count();
    let (raw, ticks) = (u128::from(raw_1 - raw_0), u128::from(count_1 - count_0));
    match u64::try_from(((raw * 1000) << 32).checked_div(ticks).unwrap_or(0)) {
        Ok(ps_per_tick_q32) if ps_per_tick_q32 > 0 => Clock { source: counter::SOURCE, ps_per_tick_q32 },
        _ => Clock::MONOTONIC,
    }
}

/// Reads a [`Clock`], the calibration of which is data, on this machine.
pub trait Now: Copy {
    /// Reads the clock. Later instructions may start before the
    /// reading is taken: for the moment before an act.
    fn now(self) -> Ticks;

    /// Reads the clock after every earlier load that was looked at has its value: for the moment
    /// after a wait. The reading cannot slip ahead of the load that saw the notification.
    fn now_awake(self) -> Ticks;
}

impl Now for Clock {
    #[inline(always)]
    fn now(self) -> Ticks {
        match self.source {
            Source::Monotonic => monotonic_ns(),
            // Of this processor's counter, for no other was calibrated here.
            Source::Tsc | Source::Cntvct | Source::Rdtime => counter::count(),
        }
    }

    #[inline(always)]
    fn now_awake(self) -> Ticks {
        match self.source {
            Source::Monotonic => monotonic_ns(),
            Source::Tsc | Source::Cntvct | Source::Rdtime => counter::count_after_loads(),
        }
    }
}

/// A reading of the raw clock between two of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bracket {
    pub(crate) raw_ns: u64,
    before: Ticks,
    pub(crate) width: Ticks,
}

impl Bracket {
    /// The narrowest of several.
    #[inline]
    pub(crate) fn narrowest(read: impl Fn() -> Ticks) -> Self {
        let bracket = || {
            let before = read();
            let raw_ns = system::raw_ns();
            Self { raw_ns, before, width: read().saturating_sub(before) }
        };
        (0..64).map(|_| bracket()).min_by_key(|bracket| bracket.width).unwrap_or_else(bracket)
    }

    pub(crate) fn middle(&self) -> Ticks {
        self.before.wrapping_add(self.width / 2)
    }
}

fn raw_and_count() -> (u64, Ticks) {
    let bracket = Bracket::narrowest(counter::count_after_loads);
    (bracket.raw_ns, bracket.middle())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How fast the counter runs, where the processor says it.
    #[cfg(not(target_arch = "aarch64"))]
    fn hertz() -> Option<u64> {
        None
    }

    #[cfg(target_arch = "aarch64")]
    fn hertz() -> Option<u64> {
        let hertz: u64;
        // SAFETY: every program may read it.
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags))
        };
        Some(hertz)
    }

    #[test]
    fn a_duration_survives_the_way_to_ticks_and_back() {
        let clock = Clock { source: Source::Tsc, ps_per_tick_q32: (500 << 32) + 12345 };
        for nanoseconds in [1, 1000, 1_000_000_000, 3_600_000_000_000] {
            let duration = Duration::from_nanos(nanoseconds);
            let back = clock.ps(clock.ticks(duration));
            assert!(back.abs_diff(nanoseconds * 1000) <= 1000, "{nanoseconds} ns came back as {back} ps");
        }
    }

    /// Under an emulator of programs too, where no clock source of
    /// the kernel's is this processor's.
    #[test]
    fn the_processors_counter_runs_forward_as_fast_as_the_clock_that_it_is_calibrated_by() {
        let start = raw_and_count();
        std::thread::sleep(Duration::from_millis(20));
        let end = raw_and_count();
        let (nanoseconds, ticks) = (end.0 - start.0, end.1 - start.1);
        let Some(hertz) = hertz() else {
            assert!(ticks > 0);
            return;
        };
        let expected = u128::from(nanoseconds) * u128::from(hertz) / 1_000_000_000;
        // Of two brackets on a busy machine; a wrong frequency is wrong by much more.
        assert!(
            u128::from(ticks).abs_diff(expected) * 10 < expected,
            "{ticks} ticks of {hertz} Hz in {nanoseconds} ns"
        );
    }

    #[test]
    fn the_calibrated_clock_never_runs_backwards_on_one_thread() {
        let clock = calibrate(Duration::from_millis(5));
        let mut last = clock.now_awake();
        for _ in 0..10_000 {
            let now = clock.now_awake();
            assert!(now >= last);
            last = now;
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a trial: the time-stamp counter where it is invariant, else the monotonic clock.
//!
//! Times are ticks of a counter, differences are picoseconds in integers. No absolute time is ever a floating-point
//! number: added up in a `double`, today's epoch leaves a grid of 256 ns.

use doorbell_results::machine::clock::*;
use std::time::Duration;

/// The best clock here: the time-stamp counter if the CPU says it is invariant and the kernel itself uses it,
/// calibrated against `CLOCK_MONOTONIC_RAW` over `window`; else the monotonic clock.
///
/// The kernel keeps `tsc` as its clock source only while its watchdog finds the counters of all CPUs in step,
/// which is why its choice is taken as the proof that ours may be compared across cores.
pub fn calibrate(window: Duration) -> Clock {
    if !invariant_tsc() || !kernel_uses_tsc() {
        return Clock::MONOTONIC;
    }
    let (raw_0, tsc_0) = raw_and_tsc();
    std::thread::sleep(window);
    let (raw_1, tsc_1) = raw_and_tsc();
    let (raw, tsc) = (u128::from(raw_1 - raw_0), u128::from(tsc_1 - tsc_0));
    match u64::try_from(((raw * 1000) << 32).checked_div(tsc).unwrap_or(0)) {
        Ok(ps_per_tick_q32) if ps_per_tick_q32 > 0 => Clock { source: Source::Tsc, ps_per_tick_q32 },
        _ => Clock::MONOTONIC,
    }
}

/// Reads a [`Clock`], the calibration of which is data, on this machine.
pub trait Now: Copy {
    /// Reads the clock. Later instructions may start before the reading is taken: for the moment before an act.
    fn now(self) -> Ticks;

    /// Reads the clock after every earlier load has its value: for the moment after a wait.
    ///
    /// `rdtscp` waits for earlier loads (Intel SDM vol. 2B, RDTSCP), so the reading cannot slip ahead of the load
    /// that saw the notification.
    fn now_awake(self) -> Ticks;
}

impl Now for Clock {
    #[inline(always)]
    fn now(self) -> Ticks {
        match self.source {
            Source::Tsc => tsc(),
            Source::Monotonic => monotonic_ns(),
        }
    }

    #[inline(always)]
    fn now_awake(self) -> Ticks {
        match self.source {
            Source::Tsc => tsc_after_loads(),
            Source::Monotonic => monotonic_ns(),
        }
    }
}

/// The monotonic clock in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A pair of readings as close as they can be had: the narrowest of several brackets.
fn raw_and_tsc() -> (u64, Ticks) {
    let read = || {
        let before = tsc_after_loads();
        let raw = nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw));
        let after = tsc_after_loads();
        (after.wrapping_sub(before), raw, before.wrapping_add(after.wrapping_sub(before) / 2))
    };
    let (_, raw, tsc) = (0..64).map(|_| read()).min_by_key(|bracket| bracket.0).unwrap_or_else(read);
    (raw, tsc)
}

fn kernel_uses_tsc() -> bool {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
fn invariant_tsc() -> bool {
    raw_cpuid::CpuId::new().get_advanced_power_mgmt_info().is_some_and(|power| power.has_invariant_tsc())
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant_tsc() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn tsc() -> Ticks {
    // SAFETY: RDTSC exists on every x86-64 CPU; where CR4.TSD forbids it the kernel's own vDSO would fault too.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn tsc_after_loads() -> Ticks {
    let mut cpu = 0;
    // SAFETY: called only where CPUID reports an invariant TSC, and every such CPU has RDTSCP; `cpu` is ours.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) }
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> Ticks {
    monotonic_ns()
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_after_loads() -> Ticks {
    monotonic_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_survives_the_way_to_ticks_and_back() {
        let clock = Clock { source: Source::Tsc, ps_per_tick_q32: (500 << 32) + 12345 };
        for nanoseconds in [1, 1000, 1_000_000_000, 3_600_000_000_000] {
            let duration = Duration::from_nanos(nanoseconds);
            let back = clock.ps(clock.ticks(duration));
            assert!(back.abs_diff(nanoseconds * 1000) <= 1000, "{nanoseconds} ns came back as {back} ps");
        }
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

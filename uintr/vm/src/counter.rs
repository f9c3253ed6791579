// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's time-stamp counter, which is also what translated CPUs show their guest.
//!
//! A guest's kernel would compare it with emulated timers for some milliseconds of its boot,
//! between which a busy host keeps the emulator from running: all of the guest's time is wrong by
//! what that comparison is. So the kernel is told.

use std::thread;
use std::time::{Duration, Instant};

/// Long beside what a reading of both clocks takes.
const SPAN: Duration = Duration::from_millis(50);

/// Of so many readings one is not interrupted.
const READINGS: usize = 32;

/// How often it counts in a millisecond; `None` where the processor
/// is another one, whose emulator has another clock.
pub(crate) fn kilohertz() -> Option<u64> {
    let (start, first) = reading()?;
    thread::sleep(SPAN);
    let (end, last) = reading()?;
    let nanoseconds = u64::try_from((end - start).as_nanos()).ok()?;
    last.checked_sub(first)?.checked_mul(1_000_000)?.checked_div(nanoseconds)
}

/// The same moment by both clocks.
fn reading() -> Option<(Instant, u64)> {
    let readings = (0..READINGS).map(|_| {
        let before = Instant::now();
        let count = count()?;
        Some((before.elapsed(), before, count))
    });
    readings.flatten().min_by_key(|&(took, ..)| took).map(|(_, when, count)| (when, count))
}

#[cfg(target_arch = "x86_64")]
fn count() -> Option<u64> {
    // SAFETY: every x86-64 processor has RDTSC, and Linux lets
    // programs use it unless one asks otherwise for itself.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn count() -> Option<u64> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #[test]
    fn two_measurements_agree() {
        let (one, other) = (super::kilohertz().unwrap(), super::kilohertz().unwrap());
        assert!(one.abs_diff(other) * 50 < one, "{one} kHz, {other} kHz");
    }
}

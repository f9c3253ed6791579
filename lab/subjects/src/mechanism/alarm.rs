// SPDX-License-Identifier: MIT OR Apache-2.0
//! A timer that interrupts this thread's blocking calls: for a wait
//! that has no timed form of its own.

use std::ptr;
use std::time::Duration;

use super::OpenError;
use super::c_call::{ThreadTimer, handle};
use super::deadline::posix;

/// A timer of the kernel that sends this thread a signal whose handler does nothing; the
/// interrupted call returns `EINTR`.
pub(super) struct Alarm(ThreadTimer);

/// How long after a first signal the next follows. One that comes after the look at the clock and
/// before the call would be lost; the next one is not.
const AGAIN: Duration = Duration::from_millis(1);

extern "C" fn interrupt(_: libc::c_int) {}

impl Alarm {
    /// An alarm for the calling thread, not set.
    pub(super) fn new() -> Result<Self, OpenError> {
        let signal = libc::SIGRTMIN() + 1;
        // SAFETY: the handler does nothing and may run anywhere.
        unsafe { handle(signal, interrupt, 0) }.map_err(OpenError::of("sigaction"))?;
        ThreadTimer::new(signal).map(Self).map_err(OpenError::of("timer_create"))
    }

    /// Interrupts this thread `after` from now, and from then on
    /// every millisecond until it is silenced.
    pub(super) fn set(&self, after: Duration) {
        // Zero would silence it.
        self.arm(after.max(Duration::from_nanos(1)), AGAIN);
    }

    pub(super) fn silence(&self) {
        self.arm(Duration::ZERO, Duration::ZERO);
    }

    fn arm(&self, first: Duration, interval: Duration) {
        let setting = libc::itimerspec { it_interval: posix(interval), it_value: posix(first) };
        // SAFETY: the timer is ours; the setting lives through the call, which cannot fail
        // with a valid timer and a valid time.
        unsafe { libc::timer_settime(self.0.0, 0, &raw const setting, ptr::null_mut()) };
    }
}

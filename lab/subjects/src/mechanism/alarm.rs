// SPDX-License-Identifier: MIT OR Apache-2.0
//! A timer that interrupts this thread's blocking calls: for a wait
//! that has no timed form of its own.

use std::ptr;
use std::time::Duration;

use super::OpenError;
use super::c_call::result;
use super::deadline::posix;

/// A timer of the kernel that sends this thread a signal whose handler does nothing; the
/// interrupted call returns `EINTR`.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: libc::timer_t,
}

/// How long after a first signal the next follows. One that comes after the look at the clock and
/// before the call would be lost; the next one is not.
const AGAIN: Duration = Duration::from_millis(1);

extern "C" fn interrupt(_: libc::c_int) {}

impl Alarm {
    /// An alarm for the calling thread, not set.
    pub(super) fn new() -> Result<Self, OpenError> {
        let signal = libc::SIGRTMIN() + 1;
        // SAFETY: `sigaction` is plain data, valid when zero: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = interrupt as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler does nothing and may run anywhere.
        // JUSTIFICATION: rustix has no sigaction.
        result(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })
            .map_err(OpenError::of("sigaction"))?;
        // SAFETY: `sigevent` is plain data, valid when zero.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer = ptr::null_mut();
        // SAFETY: event and timer live through the call.
        // JUSTIFICATION: rustix has no POSIX timers.
        result(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) })
            .map_err(OpenError::of("timer_create"))?;
        Ok(Self { timer })
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
        // SAFETY: the timer is ours until `drop`; the setting lives through the call, which cannot fail
        // with a valid timer and a valid time.
        unsafe { libc::timer_settime(self.timer, 0, &raw const setting, ptr::null_mut()) };
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and not used after this.
        unsafe { libc::timer_delete(self.timer) };
    }
}

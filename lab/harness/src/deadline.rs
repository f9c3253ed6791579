// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a timed wait, which an interrupted call must not move.

use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// When a timed wait gives up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    start: Instant,
    timeout: Duration,
}

impl Deadline {
    #[inline]
    pub fn after(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// What is left of it; none once it has passed.
    #[inline]
    pub fn rest(&self) -> Option<Duration> {
        self.timeout.checked_sub(self.start.elapsed()).filter(|rest| !rest.is_zero())
    }
}

/// A relative time as the kernel takes it.
#[inline]
pub fn relative(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// `timeout` from now on `clock`, as the calls of POSIX take it.
#[inline]
fn absolute(clock: ClockId, timeout: Duration) -> libc::timespec {
    let now = clock_gettime(clock);
    let nanoseconds = now.tv_nsec + i64::from(timeout.subsec_nanos());
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    libc::timespec {
        tv_sec: now.tv_sec.saturating_add(seconds).saturating_add(nanoseconds / 1_000_000_000),
        tv_nsec: nanoseconds % 1_000_000_000,
    }
}

/// `timeout` from now on the clock of POSIX's semaphores and message queues.
#[inline]
pub fn realtime(timeout: Duration) -> libc::timespec {
    absolute(ClockId::Realtime, timeout)
}

/// `timeout` from now on a clock that nobody sets.
#[inline]
pub fn monotonic(timeout: Duration) -> libc::timespec {
    absolute(ClockId::Monotonic, timeout)
}

#[inline]
pub fn posix(time: Duration) -> libc::timespec {
    let time = relative(time);
    libc::timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }
}

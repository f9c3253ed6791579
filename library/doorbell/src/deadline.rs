// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moments on the monotonic clock, in the form the kernel takes.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{Duration, Instant};

/// A moment on `CLOCK_MONOTONIC`. Setting the wall clock does not move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Timespec);

impl Deadline {
    /// `timeout` from now. A timeout too long for the clock becomes the clock's last moment.
    pub fn after(timeout: Duration) -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        Self(now.checked_add(timeout).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }))
    }

    /// The moment `instant` (which is on the same clock).
    pub fn at(instant: Instant) -> Self {
        Self::after(instant.saturating_duration_since(Instant::now()))
    }

    /// Is it over?
    pub fn passed(&self) -> bool {
        clock_gettime(ClockId::Monotonic) >= self.0
    }

    /// How long it is till then; zero if it is over.
    pub(crate) fn remaining(&self) -> Timespec {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.0.checked_sub(clock_gettime(ClockId::Monotonic)).filter(|left| *left > zero).unwrap_or(zero)
    }

    pub(crate) fn timespec(&self) -> &Timespec {
        &self.0
    }
}

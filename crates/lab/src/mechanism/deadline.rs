// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a timed wait, which an interrupted call must not move.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// When a timed wait gives up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    start: Instant,
    timeout: Duration,
}

impl Deadline {
    /// `timeout` from now.
    #[inline]
    pub(super) fn after(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// What is left of it; none once it has passed.
    #[inline]
    pub(super) fn rest(&self) -> Option<Duration> {
        self.timeout.checked_sub(self.start.elapsed()).filter(|rest| !rest.is_zero())
    }
}

/// A relative time as the kernel takes it.
#[inline]
pub(super) fn relative(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

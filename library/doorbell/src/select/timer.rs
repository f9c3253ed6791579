// SPDX-License-Identifier: MIT OR Apache-2.0
//! A moment, or one after another.

use super::source::{Parts, Source};
use crate::deadline::Deadline;
use std::time::{Duration, Instant};

/// A moment, or one after another at a distance, as one of the ends of a [`Select`](super::Select).
///
/// ```
/// use doorbell::Select;
/// use doorbell::select::Timer;
/// use std::time::Duration;
///
/// let (mut tx, mut rx) = doorbell::channel(4096)?;
/// let mut tick = Timer::every(Duration::from_millis(1));
/// let mut select = Select::new();
/// assert_eq!(select.wait(&mut [&mut rx, &mut tick], None)?, Some(1));
/// assert!(tick.try_wait() >= 1);
/// # tx.send(b"")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// The next moment. `None`: there is none any more.
    next: Option<Instant>,
    /// How far they are apart. `None`: there is one.
    period: Option<Duration>,
}

impl Timer {
    /// `delay` from now, once.
    pub fn after(delay: Duration) -> Self {
        Self { next: Instant::now().checked_add(delay), period: None }
    }

    /// At `moment`, once.
    pub fn at(moment: Instant) -> Self {
        Self { next: Some(moment), period: None }
    }

    /// `period` from now, and again and again at that distance. One
    /// that is late is followed by the next in its time.
    ///
    /// # Panics
    /// If `period` is zero.
    pub fn every(period: Duration) -> Self {
        assert!(!period.is_zero(), "a period of zero would always be over");
        Self { next: Instant::now().checked_add(period), period: Some(period) }
    }

    /// How many moments have passed since this was asked last. Never waits.
    pub fn try_wait(&mut self) -> u64 {
        let now = Instant::now();
        let Some(late) = self.next.and_then(|next| now.checked_duration_since(next)) else { return 0 };
        let Some(period) = self.period else {
            self.next = None;
            return 1;
        };
        let passed = 1 + u64::try_from(late.as_nanos() / period.as_nanos()).unwrap_or(u64::MAX - 1);
        let rest = late.as_nanos() % period.as_nanos();
        let left = period.saturating_sub(Duration::from_nanos(u64::try_from(rest).unwrap_or(0)));
        self.next = now.checked_add(left);
        passed
    }
}

impl Source for Timer {
    fn look(&mut self) -> bool {
        self.next.is_some_and(|next| next <= Instant::now())
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let next = self.next.map(Deadline::at);
        parts.until = parts.until.into_iter().chain(next).min();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking one of many threads.

use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::wait::{take_or_sleep, wake_one};
use doorbell_core::wake_one::WakeOne;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Permits that threads of this process wait for: each notification lets one of them go on, and wakes no more than one.
///
/// A [`Bell`](crate::Bell) tells all its handles; this tells one, whichever comes first. For work that lies in a queue there is
/// [`Queue`](crate::queue::Queue).
///
/// ```
/// let notify = doorbell::Notify::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| notify.wait().unwrap());
///     scope.spawn(|| notify.wait().unwrap());
///     notify.notify_one();
///     notify.notify_one();
/// });
/// # assert!(!notify.try_wait());
/// ```
///
/// # What happens when …
///
/// **… it is notified before anybody waits?** The permit is there for the next wait. **Twice?** For two; permits are counted.
///
/// **… nobody waits?** `notify_one` makes no system call: one locked addition, a fence and a load.
///
/// **… a process forks?** The child has a copy, which is another one.
#[derive(Debug, Default)]
pub struct Notify {
    permits: AtomicU32,
    waiters: WakeOne,
}

impl Notify {
    /// Without a permit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a permit, and wakes one of those who wait. (2³² permits that nobody takes are none.)
    #[inline]
    pub fn notify_one(&self) {
        // Release: pairs with `try_wait`.
        self.permits.fetch_add(1, Ordering::Release);
        wake_one(&self.waiters);
    }

    /// Takes a permit, if there is one.
    #[inline]
    pub fn try_wait(&self) -> bool {
        // Acquire: what happened before the notification happened before this.
        let take = |permits: u32| permits.checked_sub(1);
        self.permits.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).is_ok()
    }

    /// Takes a permit. Waits while there is none.
    ///
    /// # Errors
    /// [`WaitError::Os`].
    pub fn wait(&self) -> Result<(), WaitError> {
        self.wait_until(None).map(drop)
    }

    /// As [`wait`](Self::wait), but not longer than `timeout`. Says whether there was one.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, WaitError> {
        self.wait_until(Some(Deadline::after(timeout)))
    }

    /// As [`wait`](Self::wait), but not beyond `deadline` if there is one. Says whether there was one.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_until(&self, deadline: Option<Deadline>) -> Result<bool, WaitError> {
        let take = || self.try_wait().then_some(());
        Ok(take_or_sleep(&self.waiters, deadline, take)?.is_some())
    }
}

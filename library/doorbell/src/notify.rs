// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking one of many threads.

use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::mapping::MapError;
use crate::select::{Parts, Source};
use crate::wait::{take_or_sleep, wake_one};
use crate::watchers::{Watcher, Watchers};
use doorbell_core::wake_one::WakeOne;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Permits that threads of this process wait for: each notification
/// lets one of them go on, and wakes no more than one.
///
/// A [`Bell`](crate::Bell) tells all its handles; this tells one, whichever comes first. For work
/// that lies in a queue there is [`Queue`](crate::queue::Queue).
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
/// **… it is notified before anybody waits?** The permit is there for the next wait. **Twice?** For
/// two; permits are counted.
///
/// **… nobody waits?** `notify_one` makes no system call: one locked addition, a fence and a load.
///
/// **… a process forks?** The child has a copy, which is another one.
#[derive(Debug, Default)]
pub struct Notify {
    permits: AtomicU32,
    waiters: WakeOne,
    watchers: Watchers,
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
        self.watchers.tell();
    }

    /// One who waits for a permit together with other things ([`Select`](crate::Select)), or in
    /// tokio (`Async`). Each of them is told of each permit; the others find none and wait on.
    ///
    /// # Errors
    /// [`MapError`] if there is no memory for its bell.
    pub fn waiter(&self) -> Result<NotifyWaiter<'_>, MapError> {
        Ok(NotifyWaiter { watcher: self.watchers.watch()?, notify: self })
    }

    fn has_permit(&self) -> bool {
        self.permits.load(Ordering::Acquire) > 0
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

    /// As [`wait`](Self::wait), but not beyond `deadline` if there is
    /// one. Says whether there was one.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_until(&self, deadline: Option<Deadline>) -> Result<bool, WaitError> {
        let take = || self.try_wait().then_some(());
        Ok(take_or_sleep(&self.waiters, deadline, take)?.is_some())
    }
}

/// A handle of a [`Notify`] that can be waited for together with other things. When it is named,
/// [`try_wait`](Notify::try_wait) takes the permit.
#[derive(Debug)]
pub struct NotifyWaiter<'n> {
    notify: &'n Notify,
    pub(crate) watcher: Watcher,
}

impl Deref for NotifyWaiter<'_> {
    type Target = Notify;

    fn deref(&self) -> &Notify {
        self.notify
    }
}

#[cfg(feature = "tokio")]
impl NotifyWaiter<'_> {
    /// As `listen` of an end of a channel, for one who comes back by itself after true.
    pub(crate) fn arm(&mut self) -> Result<bool, WaitError> {
        let Self { notify, watcher } = self;
        watcher.arm(|| notify.has_permit())
    }
}

impl Source for NotifyWaiter<'_> {
    fn look(&mut self) -> bool {
        self.notify.has_permit()
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let Self { notify, watcher } = self;
        let notify = *notify;
        parts.add(watcher.entry(), || notify.has_permit());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One semaphore for all receivers, posted as often as there are
//! receivers: a demonstration of what goes wrong.
//!
//! Nothing ties a post to a receiver. Whoever wakes and waits again before the others have run
//! takes a second post, and somebody else goes without: a duplicate and a miss.

use super::{Fan, FanEntry, Needs};
use crate::mechanism::posix_semaphore::SemaphoreEnd;
use crate::mechanism::sem_posix::{SemPosix, SemPosixLink, Shared};
use crate::mechanism::{Link, Mechanism, OpenError};

struct One(SemPosixLink);

impl Fan for One {
    type Notifier = SemaphoreEnd<&'static Shared>;
    type Waiter = SemaphoreEnd<&'static Shared>;
    fn waiter(&self, _: u32) -> Result<Self::Waiter, OpenError> {
        self.0.waiter()
    }
    fn notifier(&self, _: u32) -> Result<Self::Notifier, OpenError> {
        self.0.notifier()
    }
}

pub(super) const FOR_ALL: FanEntry = FanEntry {
    name: "sem-posix-for-all",
    summary: "one unnamed POSIX semaphore for all receivers: counts duplicates and misses",
    available: SemPosix::available,
    needs: |_| Needs::default(),
    notification: SemPosix::NOTIFICATION,
    shared: true,
    open: |site, _| Ok(Box::new(One(SemPosixLink::open(site)?))),
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One semaphore for all receivers, posted as often as there are
//! receivers: a demonstration of what goes wrong.
//!
//! Nothing ties a post to a receiver. Whoever wakes and waits again before the others have run
//! takes a second post, and somebody else goes without: a duplicate and a miss.

use super::{Fan, FanEntry, FanOutContext, Needs, OpenFan};
use crate::mechanism::posix_semaphore::SemaphoreEnd;
use crate::mechanism::sem_posix::{SemPosix, SemPosixLink, Shared};
use crate::mechanism::{Link, Mechanism, Notification, OpenError, Site, Unavailable};

#[derive(Debug)]
pub(super) struct SemPosixForAll;

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

impl FanEntry for SemPosixForAll {
    fn name(&self) -> &'static str {
        "sem-posix-for-all"
    }
    fn summary(&self) -> &'static str {
        "one unnamed POSIX semaphore for all receivers: counts duplicates and misses"
    }
    fn available(&self) -> Result<(), Unavailable> {
        SemPosix::available()
    }
    fn notification(&self) -> Notification {
        SemPosix::NOTIFICATION
    }
    fn needs(&self, _: u64) -> Needs {
        Needs::default()
    }
    fn shared(&self) -> bool {
        true
    }
    fn open(&self, site: &Site, _: &FanOutContext) -> Result<Box<dyn OpenFan>, OpenError> {
        Ok(Box::new(One(SemPosixLink::open(site)?)))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ordinary mechanism with a link of its own for each receiver.

use std::marker::PhantomData;

use super::{Fan, FanEntry, Hall, Needs, OpenFan};
use crate::mechanism::condvar::Condvar;
use crate::mechanism::eventfd::EventfdRead;
use crate::mechanism::futex::FutexShared;
use crate::mechanism::sem_posix::SemPosix;
use crate::mechanism::sem_posix_named::SemPosixNamed;
use crate::mechanism::sem_sysv::SemSysv;
use crate::mechanism::signal_sigwaitinfo::SignalSigwaitinfo;
use crate::mechanism::unix_dgram::UnixDgram;
use crate::mechanism::{Host, Link, Mechanism, Notification, OpenError, Site, Unavailable};

/// A link of `M` for each receiver.
#[derive(Debug)]
pub(super) struct Each<M> {
    needs: fn(u64) -> Needs,
    mechanism: PhantomData<fn() -> M>,
}

impl<M> Each<M> {
    const fn with(needs: fn(u64) -> Needs) -> Self {
        Self { needs, mechanism: PhantomData }
    }
}

/// In memory that is mapped before the receivers start.
const MEMORY: fn(u64) -> Needs = |_| NONE;
const NONE: Needs = Needs {
    descriptors: 0,
    semaphore_sets: 0,
    semaphores_per_set: 0,
    shm_bytes: 0,
    mappings: 0,
    queued_signals: 0,
};
/// A link's two descriptors, inherited by all, and the notifier's own for each.
const DESCRIPTORS: fn(u64) -> Needs = |receivers| Needs { descriptors: 3 * receivers, ..NONE };
/// A file of one page for each, which the notifier maps.
const FILES: fn(u64) -> Needs =
    |receivers| Needs { shm_bytes: receivers * 4096, mappings: receivers, ..NONE };
const SETS: fn(u64) -> Needs = |receivers| Needs { semaphore_sets: receivers, semaphores_per_set: 1, ..NONE };
/// One for each may be on its way.
const SIGNALS: fn(u64) -> Needs = |receivers| Needs { queued_signals: receivers, ..NONE };

pub(super) const SEM_POSIX_NAMED: Each<SemPosixNamed> = Each::with(FILES);
pub(super) const SEM_POSIX: Each<SemPosix> = Each::with(MEMORY);
pub(super) const SEM_SYSV: Each<SemSysv> = Each::with(SETS);
pub(super) const FUTEX: Each<FutexShared> = Each::with(MEMORY);
pub(super) const EVENTFD: Each<EventfdRead> = Each::with(DESCRIPTORS);
pub(super) const UNIX_DGRAM: Each<UnixDgram> = Each::with(DESCRIPTORS);
pub(super) const CONDVAR: Each<Condvar> = Each::with(MEMORY);
pub(super) const SIGNAL: Each<SignalSigwaitinfo> = Each::with(SIGNALS);

struct Links<M: Mechanism>(Vec<M::Link>);

impl<M: Mechanism> Fan for Links<M> {
    type Notifier = <M::Link as Link>::Notifier;
    type Waiter = <M::Link as Link>::Waiter;
    fn waiter(&self, number: u32) -> Result<Self::Waiter, OpenError> {
        self.0[number as usize].waiter()
    }
    fn notifier(&self, number: u32) -> Result<Self::Notifier, OpenError> {
        self.0[number as usize].notifier()
    }
}

impl<M: Mechanism> FanEntry for Each<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn summary(&self) -> &'static str {
        M::explanation().summary
    }
    fn available(&self, host: &Host) -> Result<(), Unavailable> {
        M::available(host)
    }
    fn notification(&self) -> Notification {
        M::NOTIFICATION
    }
    fn needs(&self, receivers: u64) -> Needs {
        (self.needs)(receivers)
    }
    fn open(&self, site: &Site, hall: &Hall) -> Result<Box<dyn OpenFan>, OpenError> {
        let links = (0..hall.receivers).map(|_| M::Link::open(site)).collect::<Result<_, _>>()?;
        Ok(Box::new(Links::<M>(links)))
    }
}

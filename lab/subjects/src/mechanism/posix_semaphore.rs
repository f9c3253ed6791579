// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two POSIX semaphores share once they are made.

use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};

use super::c_call::result;
use super::deadline::realtime;
use super::{Fault, Notifier, Waiter, Woken};

/// A semaphore as POSIX's calls take it.
///
/// # Safety
/// `raw` must return the address of an initialised semaphore for as long as the value lives.
pub(super) unsafe trait Semaphore {
    fn raw(&self) -> *mut libc::sem_t;
}

pub(crate) struct SemaphoreEnd<S>(pub(super) S);

/// The texts both explanations share.
pub(super) const KERNEL: &str = "glibc keeps a value and a count of waiters in one 64-bit word. \
    sem_post adds one and calls FUTEX_WAKE only if somebody waits; sem_wait takes one if there is \
    one, in user mode, and else sleeps in FUTEX_WAIT.";
pub(super) const LIMITS: &str = "Without a waiter sem_post makes no system call, so its cost then \
    is not that of a wake-up. Counts up to SEM_VALUE_MAX (2^31-1). The timed wait is \
    sem_timedwait, whose deadline is on the real-time clock: setting the clock moves it.";

impl<S: Semaphore> Notifier for SemaphoreEnd<S> {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: `Semaphore` vouches for the address.
        result(unsafe { libc::sem_post(self.0.raw()) }).map(drop).map_err(Fault::of("sem_post"))
    }
}

impl<S: Semaphore> Waiter for SemaphoreEnd<S> {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        // SAFETY: as above.
        retry_on_intr(|| result(unsafe { libc::sem_wait(self.0.raw()) }))
            .map(drop)
            .map_err(Fault::of("sem_wait"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = realtime(timeout);
        // SAFETY: as above; the deadline lives through the call.
        match retry_on_intr(|| result(unsafe { libc::sem_timedwait(self.0.raw(), &raw const deadline) })) {
            Ok(_) => Ok(Woken::Notified),
            Err(Errno::TIMEDOUT) => Ok(Woken::TimedOut),
            Err(error) => Err(Fault::new("sem_timedwait", error)),
        }
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        // SAFETY: as above.
        match retry_on_intr(|| result(unsafe { libc::sem_trywait(self.0.raw()) })) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(Fault::new("sem_trywait", error)),
        }
    }
}

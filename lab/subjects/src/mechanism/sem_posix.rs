// SPDX-License-Identifier: MIT OR Apache-2.0
//! An unnamed POSIX semaphore in shared memory.

use std::cell::UnsafeCell;

use rustix::io::Errno;

use super::c_call::result;
use super::posix_semaphore::{KERNEL, LIMITS, Semaphore, SemaphoreEnd};
use super::{Explanation, Link, Mechanism, OpenError, Site, Unavailable};
use doorbell_harness::arena::Zeroed;

pub(crate) struct SemPosix;

pub(crate) struct SemPosixLink(&'static Shared);

/// A semaphore in memory that both sides map, alone on its cache lines.
#[repr(C, align(128))]
pub(crate) struct Shared(UnsafeCell<libc::sem_t>);

// SAFETY: only the calls of POSIX semaphores touch the inside, and
// those are made for concurrent callers.
unsafe impl Sync for Shared {}
// SAFETY: `sem_t` is plain data, valid when zero, without pointers
// into a process when initialised as process-shared.
unsafe impl Zeroed for Shared {}

// SAFETY: `SemPosixLink::open` initialises it before anybody gets the
// reference, and the arena is never unmapped.
unsafe impl Semaphore for &'static Shared {
    #[inline]
    fn raw(&self) -> *mut libc::sem_t {
        self.0.get()
    }
}

/// Makes a semaphore of zero that processes may share.
fn initialise(shared: &Shared) -> Result<(), Errno> {
    // SAFETY: the address is that of a `sem_t` which nobody uses yet.
    result(unsafe { libc::sem_init(shared.0.get(), 1, 0) }).map(drop)
}

impl Mechanism for SemPosix {
    type Link = SemPosixLink;
    const NAME: &'static str = "sem-posix";
    const COALESCES: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "unnamed POSIX semaphore in shared memory",
        how: "sem_init with pshared = 1 in memory both sides map; the notifier calls sem_post, \
            the waiter sem_wait.",
        kernel: KERNEL,
        limits: LIMITS,
        sources: &[
            "sem_overview(7), sem_post(3), sem_wait(3)",
            "glibc nptl/sem_waitcommon.c, nptl/sem_post.c",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        let shared = Shared(UnsafeCell::new(
            // SAFETY: `sem_t` is plain data, valid when zero.
            unsafe { std::mem::zeroed() },
        ));
        initialise(&shared).map_err(|error| {
            Unavailable::because(format!("sem_init with pshared = 1 is refused here: {error}"))
        })
    }
}

impl Link for SemPosixLink {
    type Notifier = SemaphoreEnd<&'static Shared>;
    type Waiter = SemaphoreEnd<&'static Shared>;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let shared = site.place::<Shared>()?;
        initialise(shared).map_err(OpenError::of("sem_init"))?;
        Ok(Self(shared))
    }
    fn waiter(&self) -> Result<Self::Waiter, OpenError> {
        Ok(SemaphoreEnd(self.0))
    }
    fn notifier(&self) -> Result<Self::Notifier, OpenError> {
        self.waiter()
    }
}

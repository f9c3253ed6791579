// SPDX-License-Identifier: MIT OR Apache-2.0
//! A condition variable with its mutex, shared between processes.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::io::Errno;

use super::deadline::monotonic;
use super::{Explanation, Fault, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken};
use doorbell_harness::arena::Zeroed;

pub(crate) struct Condvar;

/// The condition variable and what belongs to it, as either end has it.
#[derive(Clone, Copy)]
pub(crate) struct CondvarLink(&'static Shared);

/// Mutex, condition variable and count, as programs keep them: side by side.
#[repr(C, align(128))]
struct Shared {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    condition: UnsafeCell<libc::pthread_cond_t>,
    /// Notifications not yet consumed. Invariant: touched only by who holds `mutex`.
    rung: UnsafeCell<u64>,
}

// SAFETY: mutex and condition are made for concurrent callers, and `rung` is guarded by the mutex.
unsafe impl Sync for Shared {}
// SAFETY: plain data, valid when zero; process-shared primitives hold no pointer into a process.
unsafe impl Zeroed for Shared {}

/// What a pthread call returned: 0 or the error itself.
#[inline]
fn result(value: libc::c_int) -> Result<(), Errno> {
    if value == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(value)) }
}

impl Shared {
    /// Makes both primitives process-shared, and the deadline's clock one that nobody sets.
    fn initialise(&self) -> Result<(), OpenError> {
        let mut mutex = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let mut condition = MaybeUninit::<libc::pthread_condattr_t>::uninit();
        // SAFETY: attributes are initialised before they are used and destroyed after; the addresses are
        // those of memory that nobody uses yet.
        unsafe {
            result(libc::pthread_mutexattr_init(mutex.as_mut_ptr()))
                .map_err(OpenError::of("pthread_mutexattr_init"))?;
            result(libc::pthread_mutexattr_setpshared(mutex.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED))
                .map_err(OpenError::of("pthread_mutexattr_setpshared"))?;
            result(libc::pthread_mutex_init(self.mutex.get(), mutex.as_ptr()))
                .map_err(OpenError::of("pthread_mutex_init"))?;
            libc::pthread_mutexattr_destroy(mutex.as_mut_ptr());
            result(libc::pthread_condattr_init(condition.as_mut_ptr()))
                .map_err(OpenError::of("pthread_condattr_init"))?;
            result(libc::pthread_condattr_setpshared(condition.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED))
                .map_err(OpenError::of("pthread_condattr_setpshared"))?;
            result(libc::pthread_condattr_setclock(condition.as_mut_ptr(), libc::CLOCK_MONOTONIC))
                .map_err(OpenError::of("pthread_condattr_setclock"))?;
            result(libc::pthread_cond_init(self.condition.get(), condition.as_ptr()))
                .map_err(OpenError::of("pthread_cond_init"))?;
            libc::pthread_condattr_destroy(condition.as_mut_ptr());
        }
        Ok(())
    }

    /// Does `act` on the count while holding the mutex.
    #[inline]
    fn locked<T>(&self, act: impl FnOnce(*mut u64) -> T) -> Result<T, Fault> {
        // SAFETY: `initialise` ran before anybody got a reference. Holding the mutex makes the count ours.
        unsafe {
            result(libc::pthread_mutex_lock(self.mutex.get())).map_err(Fault::of("pthread_mutex_lock"))?;
            let done = act(self.rung.get());
            result(libc::pthread_mutex_unlock(self.mutex.get()))
                .map_err(Fault::of("pthread_mutex_unlock"))?;
            Ok(done)
        }
    }
}

/// Takes one from the count if there is one; called with the mutex held.
///
/// Through a pointer and not a reference: the count changes during `pthread_cond_wait`, and of an
/// exclusive reference that lives across the call the compiler may assume that it does not.
#[inline]
fn take(rung: *mut u64) -> bool {
    // SAFETY: `rung` points into the trial's mapping, aligned, and the mutex makes it ours for now.
    unsafe {
        let count = rung.read_volatile();
        rung.write_volatile(count - u64::from(count > 0));
        count > 0
    }
}

impl Mechanism for Condvar {
    type Link = CondvarLink;
    const NAME: &'static str = "condvar";
    const COALESCES: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "process-shared pthread condition variable with its mutex",
        how: "The notifier locks the mutex, adds one to a count, unlocks, and calls \
            pthread_cond_signal; the waiter locks, waits with pthread_cond_wait while the \
            count is zero, takes one, unlocks. It is signalled after unlocking, so that the \
            waiter does not wake only to sleep again on the mutex.",
        kernel: "Two futexes: pthread_cond_signal calls FUTEX_WAKE if somebody waits, \
            pthread_cond_wait releases the mutex, sleeps in FUTEX_WAIT, and takes the mutex \
            again. All else happens in user mode.",
        limits: "Without a waiter the signal makes no system call. A process that dies with \
            the mutex held blocks the other for ever, unless the mutex is robust, which this \
            one is not. Wake-ups may be spurious; the count absorbs them. The timed wait is \
            pthread_cond_timedwait on the monotonic clock.",
        sources: &[
            "pthread_cond_wait(3), pthread_condattr_setpshared(3)",
            "glibc nptl/pthread_cond_wait.c, its opening comment",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        // SAFETY: plain data, valid when zero.
        let shared: Shared = unsafe { std::mem::zeroed() };
        shared.initialise()?;
        Ok(())
    }
}

impl Link for CondvarLink {
    type Notifier = Self;
    type Waiter = Self;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let shared = site.place::<Shared>()?;
        shared.initialise()?;
        Ok(Self(shared))
    }
    fn waiter(&self) -> Result<Self, OpenError> {
        Ok(*self)
    }
    fn notifier(&self) -> Result<Self, OpenError> {
        Ok(*self)
    }
}

impl Notifier for CondvarLink {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: as in `take`.
        self.0.locked(|rung| unsafe { rung.write_volatile(rung.read_volatile() + 1) })?;
        // SAFETY: as in `locked`.
        result(unsafe { libc::pthread_cond_signal(self.0.condition.get()) })
            .map_err(Fault::of("pthread_cond_signal"))
    }
}

impl Waiter for CondvarLink {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        let (mutex, condition) = (self.0.mutex.get(), self.0.condition.get());
        self.0.locked(|rung| {
            while !take(rung) {
                // SAFETY: as in `locked`, which holds the mutex.
                result(unsafe { libc::pthread_cond_wait(condition, mutex) })
                    .map_err(Fault::of("pthread_cond_wait"))?;
            }
            Ok(())
        })?
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = monotonic(timeout);
        let (mutex, condition) = (self.0.mutex.get(), self.0.condition.get());
        self.0.locked(|rung| {
            while !take(rung) {
                // SAFETY: as above; the deadline lives through the call.
                match result(unsafe { libc::pthread_cond_timedwait(condition, mutex, &raw const deadline) }) {
                    Ok(()) => {}
                    Err(Errno::TIMEDOUT) => return Ok(Woken::when(take(rung))),
                    Err(error) => return Err(Fault::new("pthread_cond_timedwait", error)),
                }
            }
            Ok(Woken::Notified)
        })?
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.0.locked(take)
    }
}

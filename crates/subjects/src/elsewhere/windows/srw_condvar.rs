// SPDX-License-Identifier: MIT OR Apache-2.0
//! A condition variable of Windows with its slim lock.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_TIMEOUT, GetLastError};
use windows_sys::Win32::System::Threading::{
    AcquireSRWLockExclusive, CONDITION_VARIABLE, CONDITION_VARIABLE_INIT, ReleaseSRWLockExclusive, SRWLOCK,
    SRWLOCK_INIT, SleepConditionVariableSRW, WakeConditionVariable,
};

use doorbell_harness::wait_on_address::milliseconds;

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

/// The notifier counts under the lock and wakes, the waiter waits for the count.
#[derive(Debug)]
pub struct SrwCondvar;

/// Lock, condition variable and count, as programs keep them: side by side.
#[repr(C, align(128))]
struct Shared {
    lock: UnsafeCell<SRWLOCK>,
    condition: UnsafeCell<CONDITION_VARIABLE>,
    /// Notifications not yet consumed. Invariant: touched only by who holds `lock`.
    rung: UnsafeCell<u64>,
}

// SAFETY: lock and condition are made for concurrent callers, and `rung` is guarded by the lock.
unsafe impl Sync for Shared {}
// SAFETY: neither belongs to a thread.
unsafe impl Send for Shared {}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct SrwLink(Arc<Shared>);

#[derive(Debug)]
pub struct SrwEnd(Arc<Shared>);

/// Takes one from the count if there is one; called with the lock held.
///
/// Through a pointer and not a reference: the count changes during the sleep, and of an exclusive reference that lives across the call the
/// compiler may assume that it does not.
#[inline]
fn take(rung: *mut u64) -> bool {
    // SAFETY: aligned, alive, and the lock makes it ours for now.
    unsafe {
        let count = rung.read_volatile();
        rung.write_volatile(count - u64::from(count > 0));
        count > 0
    }
}

impl Shared {
    /// Does `act` on the count while holding the lock.
    #[inline]
    fn locked<T>(&self, act: impl FnOnce(*mut u64) -> T) -> T {
        // SAFETY: the lock is initialised, lives as long as this, and is released by the thread that took it.
        unsafe { AcquireSRWLockExclusive(self.lock.get()) };
        let done = act(self.rung.get());
        // SAFETY: as above.
        unsafe { ReleaseSRWLockExclusive(self.lock.get()) };
        done
    }

    /// Waits for one; `timeout` is for all of it.
    #[inline]
    fn wait(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ends = timeout.map(|timeout| Instant::now() + timeout);
        self.locked(|rung| {
            while !take(rung) {
                let rest = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
                // SAFETY: both are initialised, and this thread holds the lock.
                let woken = unsafe {
                    SleepConditionVariableSRW(self.condition.get(), self.lock.get(), milliseconds(rest), 0)
                };
                // SAFETY: takes nothing.
                if woken == 0 && unsafe { GetLastError() } != ERROR_TIMEOUT {
                    return Err(Fault::new("SleepConditionVariableSRW", std::io::Error::last_os_error()));
                }
                if woken == 0 && ends.is_some_and(|ends| ends <= Instant::now()) {
                    return Ok(take(rung));
                }
            }
            Ok(true)
        })
    }
}

impl Mechanism for SrwCondvar {
    type Link = SrwLink;
    const NAME: &'static str = "srw-condvar";
    const COALESCES: bool = false;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "condition variable of Windows with a slim lock (threads only)",
            how: "The notifier takes the lock, adds one to a count, releases it, and calls WakeConditionVariable; the waiter sleeps in \
                  SleepConditionVariableSRW while the count is zero, and takes one.",
            kernel: "Lock and condition variable are a word each, with lists of waiters on their stacks; the kernel is entered to sleep and to \
                     wake a sleeper, by a keyed event or an alert of the thread.",
            limits: "Threads of one process. Wake-ups may come without a reason; the count absorbs them. The timed wait counts milliseconds.",
            sources: &[
                "SleepConditionVariableSRW, WakeConditionVariable, slim reader/writer locks (Win32 API, Synchronization)",
            ],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        Ok(())
    }
}

impl Link for SrwLink {
    type Notifier = SrwEnd;
    type Waiter = SrwEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        Ok(Self(Arc::new(Shared {
            lock: UnsafeCell::new(SRWLOCK_INIT),
            condition: UnsafeCell::new(CONDITION_VARIABLE_INIT),
            rung: UnsafeCell::new(0),
        })))
    }
    fn waiter(&self) -> Result<SrwEnd, OpenError> {
        Ok(SrwEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<SrwEnd, OpenError> {
        Ok(SrwEnd(self.0.clone()))
    }
}

impl Notifier for SrwEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: as in `take`.
        self.0.locked(|rung| unsafe { rung.write_volatile(rung.read_volatile() + 1) });
        // SAFETY: the condition variable is initialised and lives as long as this.
        unsafe { WakeConditionVariable(self.0.condition.get()) };
        Ok(())
    }
}

impl Waiter for SrwEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.wait(None).map(drop)
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.0.wait(Some(timeout)).map(Woken::when)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.0.locked(take))
    }
}

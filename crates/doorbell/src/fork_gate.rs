// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks that a fork waits for.
//!
//! A forked child has the locks as they were, and of the threads only the one that forked: a lock that another thread
//! held would stay locked there for ever. So a fork waits until none of these is held, and meanwhile nobody takes one.
//!
//! They are held for a few instructions or system calls, once a process for some milliseconds, and never one inside
//! another: a thread that held one and wanted a second would wait for a fork that waits for the first.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Shared by all who hold a lock, had alone by the thread that forks.
static GATE: RwLock<()> = RwLock::new(());

/// A mutex that no forked child finds locked.
#[derive(Debug, Default)]
pub(crate) struct ForkMutex<T>(Mutex<T>);

/// While it lives, the value is locked.
#[derive(Debug)]
pub(crate) struct ForkGuard<'a, T> {
    // In this order: the mutex is free before the gate opens.
    value: MutexGuard<'a, T>,
    _gate: RwLockReadGuard<'static, ()>,
}

impl<T> ForkMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// A panic of another holder is none of ours: what is kept here is sound at each instruction.
    pub(crate) fn lock(&self) -> ForkGuard<'_, T> {
        register();
        let gate = GATE.read().unwrap_or_else(PoisonError::into_inner);
        ForkGuard { value: self.0.lock().unwrap_or_else(PoisonError::into_inner), _gate: gate }
    }
}

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    // Not a `Once`: that is a lock too.
    if !REGISTERED.load(Ordering::Relaxed) && !REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers may run in any thread that forks, before and after. Fails only without memory; then a
        // fork is as it would be without this.
        unsafe { libc::pthread_atfork(Some(close), Some(open), Some(open)) };
    }
}

/// The gate, closed.
struct Closed(UnsafeCell<Option<RwLockWriteGuard<'static, ()>>>);

// SAFETY: touched only by the thread that forks, and only while it has the gate alone.
unsafe impl Sync for Closed {}

static CLOSED: Closed = Closed(UnsafeCell::new(None));

unsafe extern "C" fn close() {
    let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: this thread has the gate alone.
    unsafe { *CLOSED.0.get() = Some(gate) };
}

/// In parent and child.
unsafe extern "C" fn open() {
    // SAFETY: the thread that closed the gate still has it alone, or is the copy of it.
    let gate = unsafe { (*CLOSED.0.get()).take() };
    drop(gate);
}

#[cfg(test)]
mod tests {
    use super::ForkMutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// The watcher's thread takes locks that every ring and every attachment take: a child was born with one held.
    #[test]
    fn a_forked_child_finds_no_lock_held_however_busy_the_other_threads_are() {
        static LOCK: ForkMutex<u64> = ForkMutex::new(0);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let mut value = LOCK.lock();
                        // Long enough to be met.
                        (0..100).for_each(|_| std::hint::spin_loop());
                        *value += 1;
                    }
                });
            }
            for _ in 0..200 {
                // SAFETY: the child takes the lock under test, and exits.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // A hang is ended by a signal, which the parent sees.
                    // SAFETY: no precondition.
                    unsafe { libc::alarm(60) };
                    *LOCK.lock() += 1;
                    // SAFETY: no precondition.
                    unsafe { libc::_exit(0) };
                }
                let mut status = 0;
                // SAFETY: a child of ours, and a valid place for its status.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                assert_eq!(status, 0);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

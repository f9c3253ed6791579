// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks that a fork waits for.
//!
//! A forked child has the locks as they were, and of the threads only the one that forked: a lock
//! that another thread held would stay locked there for ever. So a fork waits until none of these
//! is held, and meanwhile nobody takes one.
//!
//! They are held for a few instructions or system calls, and never one inside another: a thread
//! that held one and wanted a second would wait for a fork that waits for the first.
//!
//! Handlers of `fork` that a library registers later than this one run before ours: one that takes
//! a lock there which a holder of ours waits for (an allocator loaded late) would never get to the
//! fork. glibc's own locks are taken after all handlers.

use crate::order::Order;
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Shared by all who hold a lock, had alone by the thread that forks.
static GATE: RwLock<()> = RwLock::new(());

/// A mutex that no forked child finds locked.
#[derive(Debug, Default)]
pub(crate) struct ForkMutex<T> {
    value: Mutex<T>,
    order: Order,
}

/// While it lives, the value is locked.
#[derive(Debug)]
pub(crate) struct ForkGuard<'a, T> {
    // In this order: the mutex is free before the gate opens.
    value: MutexGuard<'a, T>,
    order: &'a Order,
    _gate: RwLockReadGuard<'static, ()>,
}

impl<T> ForkMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), order: Order::new() }
    }

    /// A panic of another holder is none of ours: what is kept here is sound at each instruction.
    pub(crate) fn lock(&self) -> ForkGuard<'_, T> {
        register();
        let gate = GATE.read().unwrap_or_else(PoisonError::into_inner);
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.order.pass();
        ForkGuard { value, order: &self.order, _gate: gate }
    }
}

impl<T> Drop for ForkGuard<'_, T> {
    fn drop(&mut self) {
        self.order.pass();
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

/// Registers the handlers, unless they are. To be called before this thread can fork with anything
/// of the library: a fork that was under way when they came opens no gate in its child which
/// another thread had closed.
pub(crate) fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    // After the registration, never before: whoever finds it set has
    // handlers, and so has every child forked since. Acquire and release: a
    // thread that finds it set takes its lock after the handlers were there.
    if !REGISTERED.load(Ordering::Acquire) && enrol() {
        REGISTERED.store(true, Ordering::Release);
    }
}

/// Registers the handlers. Two threads may do it at once, and a child
/// forked in between once more: `DEPTH` sees to that.
fn enrol() -> bool {
    // SAFETY: the handlers may run in any thread that forks, before and after. Fails only without
    // memory; then a fork is as it would be without this.
    unsafe { libc::pthread_atfork(Some(close), Some(open), Some(open)) == 0 }
}

/// The gate, closed.
struct Closed(UnsafeCell<Option<RwLockWriteGuard<'static, ()>>>);

// SAFETY: touched only by the thread that forks, and only while it has the gate alone.
unsafe impl Sync for Closed {}

static CLOSED: Closed = Closed(UnsafeCell::new(None));
/// Of those who have the gate alone.
static CLOSING: Order = Order::new();

thread_local! {
    /// How many of the handlers of the fork under way in this thread have closed the gate and not opened it. More than
    /// one if they were registered more than once.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn close() {
    if DEPTH.replace(DEPTH.get() + 1) > 0 {
        return;
    }
    let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
    CLOSING.pass();
    // SAFETY: this thread has the gate alone.
    unsafe { *CLOSED.0.get() = Some(gate) };
}

unsafe extern "C" fn open() {
    // 0: these handlers were registered while the fork was under way, and did not close the gate.
    let depth = DEPTH.get();
    DEPTH.set(depth.saturating_sub(1));
    if depth != 1 {
        return;
    }
    // SAFETY: the thread that closed the gate still has it alone, or is the copy of it.
    let gate = unsafe { (*CLOSED.0.get()).take() };
    CLOSING.pass();
    drop(gate);
}

#[cfg(test)]
mod tests {
    use super::{ForkMutex, enrol};
    use crate::generation::tests::{by_fork, in_a_child};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// Runs a test that a fork which never ends would keep for ever,
    /// and fails where it does not end.
    fn bounded(test: impl FnOnce() + Send + 'static) {
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            // Told also where the test panics: the sender is dropped.
            let _tell = tell;
            test();
        });
        let ended: Result<(), _> = told.recv_timeout(Duration::from_secs(300));
        assert_ne!(ended, Err(mpsc::RecvTimeoutError::Timeout), "a fork never ended");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }

    /// Ends the threads of a test, also where it fails.
    struct Stop<'a>(&'a AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// The flag was set before the handlers were there: a second
    /// thread took its lock, a third forked.
    #[test]
    fn handlers_registered_more_than_once_close_and_open_the_gate_once() {
        static LOCK: ForkMutex<u64> = ForkMutex::new(0);
        bounded(|| {
            *LOCK.lock() += 1;
            assert!(enrol() && enrol());
            assert!(in_a_child(by_fork, || {
                *LOCK.lock() += 1;
                in_a_child(by_fork, || *LOCK.lock() == 2)
            }));
            assert_eq!(*LOCK.lock(), 1);
        });
    }

    /// The watcher's thread takes locks that every ring and every
    /// attachment take: a child was born with one held.
    #[test]
    fn a_forked_child_finds_no_lock_held_however_busy_the_other_threads_are() {
        static LOCK: ForkMutex<u64> = ForkMutex::new(0);
        bounded(|| {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                let _stop = Stop(&stop);
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
                    assert!(in_a_child(by_fork, || {
                        *LOCK.lock() += 1;
                        true
                    }));
                }
            });
        });
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ending a thread's waits from another thread.

use super::WaitEntry;
use crate::bell_state::BellState;
use crate::error::WaitError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends the waits of one thread from another, with [`WaitError::Interrupted`]: for bindings, where
/// one thread may close what another waits with. A rendezvous has no bell: it looks once a second.
///
/// ```
/// use doorbell::wait::Interrupt;
/// use std::sync::Arc;
///
/// let (_sender, mut receiver) = doorbell::channel::pair(4096)?;
/// let interrupt = Arc::new(Interrupt::default());
/// let other = Arc::clone(&interrupt);
/// std::thread::spawn(move || other.interrupt());
/// assert!(interrupt.during(|| receiver.recv().is_err()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Interrupt {
    interrupted: AtomicBool,
    asks: Option<fn() -> bool>,
    /// Where the thread sleeps.
    asleep: Mutex<Vec<Arc<BellState>>>,
}

thread_local! {
    static OURS: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
}

impl Interrupt {
    /// One that ends a rendezvous (whatever waits with a [`Join`](crate::rendezvous::Join), or for
    /// a child) also if `asks` says so. It is asked after every signal that the thread handles,
    /// and once a second: one that comes just before a system call does not end that.
    pub fn asking(asks: fn() -> bool) -> Self {
        Self { asks: Some(asks), ..Self::default() }
    }

    /// Runs `run`, whose sleeps in this thread it can end. Those before, in and behind `run` end at
    /// once if it has been used.
    pub fn during<R>(self: &Arc<Self>, run: impl FnOnce() -> R) -> R {
        struct Restore(Option<Arc<Interrupt>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                OURS.set(self.0.take());
            }
        }
        let _restore = Restore(OURS.replace(Some(Arc::clone(self))));
        run()
    }

    /// Ends the sleep, and every later one. Who spins finds out when it is about to sleep.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
        // One that comes to sleep after this finds the flag; one that
        // is here, and not asleep yet, finds its ticket outdated.
        for state in &*self.asleep() {
            state.wake_everybody();
        }
    }

    /// Has it been used?
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    fn asleep(&self) -> MutexGuard<'_, Vec<Arc<BellState>>> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Can this thread's waits be ended?
pub(crate) fn is_set() -> bool {
    OURS.with_borrow(Option::is_some)
}

/// Is what this thread waits for, without a bell, to end?
pub(crate) fn asked() -> bool {
    // Not borrowed meanwhile: what is asked may wait itself.
    let ours = OURS.with_borrow(Clone::clone);
    ours.is_some_and(|ours| ours.is_interrupted() || ours.asks.is_some_and(|asks| asks()))
}

/// As long as it lives, this thread's interrupt knows where it sleeps.
pub(super) struct Asleep(Option<Arc<Interrupt>>);

impl Asleep {
    /// The thread, which has armed, is about to sleep at `entries`.
    pub(super) fn at(entries: &[WaitEntry<'_>]) -> Result<Self, WaitError> {
        let Some(ours) = OURS.with_borrow(Clone::clone) else { return Ok(Self(None)) };
        ours.asleep().extend(entries.iter().map(|entry| Arc::clone(entry.listener.slots.state())));
        let asleep = Self(Some(ours));
        let interrupted = asleep.0.as_ref().is_some_and(|ours| ours.is_interrupted());
        if interrupted { Err(WaitError::Interrupted) } else { Ok(asleep) }
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        if let Some(ours) = &self.0 {
            ours.asleep().clear();
        }
    }
}

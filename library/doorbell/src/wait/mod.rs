// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways of waiting, one file each, behind one trait.
//!
//! | way | while waiting | fits |
//! |---|---|---|
//! | [`Adaptive`] | spins as long as it pays, then sleeps on the futex | almost everything |
//! | [`Futex`] | sleeps at once | rare events |
//! | [`Spin`] | occupies its CPU | a CPU of its own, and no other wait |
//! | [`Yield`] | occupies its CPU, but lets others go first | more threads than CPUs, short waits |
//! | [`Eventfd`] | sleeps in `poll` on the bell's eventfd | waiting in this thread, now and then in an event loop |
//! | `IoUring` | sleeps in io_uring (feature `io_uring`) | comparison; programs that live in a ring |
//! | [`Null`] | does not wait: looks once | the cost of everything but waiting |
//!
//! Whichever way the waiter chose, the notifier does the same: it
//! finds in the shared words who sleeps where.

mod adaptive;
mod eventfd;
mod futex;
pub(crate) mod interrupt;
#[cfg(feature = "io_uring")]
mod io_uring;
mod null;
mod one;
mod spin;
mod waiter_slot;
mod r#yield;

pub use adaptive::Adaptive;
pub use eventfd::Eventfd;
pub(crate) use eventfd::{Token, sleep as sleep_on_files};
pub use futex::Futex;
pub(crate) use futex::sleep as sleep_on_futexes;
use interrupt::Asleep;
pub use interrupt::Interrupt;
#[cfg(feature = "io_uring")]
pub use io_uring::IoUring;
pub use null::Null;
pub(crate) use one::{take as take_or_sleep, wake_all, wake_one};
pub use spin::Spin;
pub use r#yield::Yield;

use crate::bell_state::BellState;
use crate::counters::Counters;
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::wake::{Sleep, Slept, Waiter, WaiterSlot, wait_until};
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
pub(crate) use waiter_slot::MADE;
use waiter_slot::WaiterSlots;

/// A way of waiting.
///
/// It is a type parameter, so that the choice is made when the
/// program is compiled and costs nothing when it runs.
pub trait Wait: Send + Sync {
    /// Its name in tables and counters.
    const NAME: &'static str;
    /// For how many bells at once it can wait.
    const MOST_BELLS: usize = usize::MAX;

    /// Waits until `ready` says true at any of `entries`, or until
    /// `deadline`. Returns what `ready` last said.
    ///
    /// `ready` looks at what a notifier makes true before it calls
    /// [`BellState::announce`], with an acquiring load.
    ///
    /// # Errors
    /// [`WaitError`], never [`WaitError::PeerGone`]: that is for `ready` to notice.
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError>;
}

/// `FUTEX_WAITV_MAX` of linux/futex.h.
pub(crate) const MOST_FUTEXES: usize = 128;

/// A bell and this waiter's place at it.
#[derive(Debug)]
pub struct WaitEntry<'a> {
    /// The bell.
    pub state: &'a BellState,
    /// The waiter's own part.
    pub listener: &'a mut Listener,
}

/// What one waiter keeps for one bell: the waiter slots it holds, its counters.
#[derive(Debug)]
pub struct Listener {
    slots: WaiterSlots,
    counters: Counters,
    partner: Option<Arc<BellState>>,
    interruptible: bool,
}

impl Listener {
    /// For a waiter at `state` whose counters appear under `name`.
    pub fn new(state: &Arc<BellState>, name: &str) -> Self {
        Self {
            slots: WaiterSlots::new(state),
            counters: Counters::register(name),
            partner: None,
            interruptible: false,
        }
    }

    /// Says that whoever rings this waiter's bell waits at `partner` otherwise: while it sleeps
    /// there, it will not ring, and spinning is in vain.
    pub fn set_partner(&mut self, partner: Arc<BellState>) {
        self.partner = Some(partner);
    }

    /// Says whether a signal handler that runs in the waiting thread ends a sleep with
    /// [`WaitError::Interrupted`].
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.interruptible = interruptible;
    }

    /// What happened in this waiter's waits so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn slots(&mut self) -> &mut WaiterSlots {
        &mut self.slots
    }

    /// The eventfd this waiter has a waiter slot at, which it takes if it has none.
    pub(crate) fn file(&mut self) -> Result<BorrowedFd<'_>, WaitError> {
        let (_, index) = self.slots.take_eventfd()?;
        Ok(self.slots.state().eventfd(index).expect(MADE).as_fd())
    }

    /// Which of its bell's eventfds that is.
    #[cfg(feature = "tokio")]
    pub(crate) fn eventfd(&mut self) -> Result<(&Arc<BellState>, usize), WaitError> {
        let (_, index) = self.slots.take_eventfd()?;
        Ok((self.slots.state(), index))
    }

    pub(crate) fn eventfd_slot(&self) -> Option<(WaiterSlot, usize)> {
        self.slots.eventfd()
    }
}

/// Does a signal end a wait at `entries`?
fn interruptible(entries: &[WaitEntry<'_>]) -> bool {
    entries.iter().any(|entry| entry.listener.interruptible)
}

/// A signal handler ran instead of the sleep: the end of the wait for those who asked for that,
/// else a wake-up without a reason, after which the protocol looks again.
fn after_signal(interruptible: bool) -> Result<Slept, WaitError> {
    if interruptible { Err(WaitError::Interrupted) } else { Ok(Slept::Woken) }
}

/// What a sleep reports that a wake-up ended, or something that only looks like one. A hostile peer
/// can wake a sleeper again and again, so that the kernel never gets to see that its time is up.
fn woken(deadline: Option<Deadline>) -> Slept {
    if deadline.is_some_and(|deadline| deadline.passed()) { Slept::TimedOut } else { Slept::Woken }
}

/// Looks until `ready`, after a `pause` each time, and at the clock after so many looks.
#[inline]
fn look(
    entries: &[WaitEntry<'_>],
    mut ready: impl FnMut() -> bool,
    deadline: Option<Deadline>,
    looks_per_glance: u32,
    pause: impl Fn(),
) -> Result<bool, WaitError> {
    if ready() {
        return Ok(true);
    }
    loop {
        for _ in 0..looks_per_glance {
            pause();
            if ready() {
                entries.iter().for_each(|entry| entry.listener.counters.spun_and_hit());
                return Ok(true);
            }
        }
        if deadline.is_some_and(|deadline| deadline.passed()) {
            return Ok(ready());
        }
    }
}

/// Sleeps by the protocol until `ready`, with one protocol waiter for each wait entry, all on waiter
/// slots that `slot` names.
fn sleep_by(
    entries: &[WaitEntry<'_>],
    slot: impl Fn(&WaitEntry<'_>) -> WaiterSlot,
    mut sleeper: impl Sleep<Error = WaitError>,
    ready: impl FnMut() -> bool,
) -> Result<bool, WaitError> {
    fn waiter<'a>(entry: &'a WaitEntry<'_>, slot: WaiterSlot) -> Waiter<'a> {
        Waiter::new(&entry.state.record().wake, slot)
    }
    let waited = match entries {
        // The case whose cost counts: no allocation.
        [entry] => wait_until(&mut [waiter(entry, slot(entry))], &mut sleeper, ready),
        _ => {
            let mut waiters: Vec<_> = entries.iter().map(|entry| waiter(entry, slot(entry))).collect();
            wait_until(&mut waiters, &mut sleeper, ready)
        }
    }?;
    entries.iter().for_each(|entry| entry.listener.counters.slept(waited));
    Ok(waited.ready)
}

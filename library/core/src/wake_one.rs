// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking one of many: for waiters of whom any one will do, such as the takers of a queue of work.
//!
//! The bell's protocol ([`wake`](crate::wake)) wakes all who sleep, for all are to hear of the
//! ring. Here each thing that is made true is for one of them: a notifier wakes one, and the others
//! sleep on. No bit stands for a sleeper, since the notifier that took it would have to wake all
//! whom it stands for; they are counted.
//!
//! ```text
//! notifier                               waiter
//! --------                               ------
//! N1 make the thing true                 W1 sleepers += 1
//! N2 full fence                          W2 full fence
//! N3 sleepers == 0? then done            W3 ticket = epoch
//! N4 epoch += 1                          W4 take the thing, if it is there, and go to W6
//! N5 wake one that sleeps on epoch       W5 sleep while epoch == ticket; then W3
//!                                        W6 sleepers -= 1
//! ```
//!
//! # Why no wake-up is lost
//!
//! Let a thing have been made true that nobody has taken, let its
//! notifier have finished, and let a waiter sleep in W5.
//!
//! 1. **N2 before W2.** Then W4 sees the thing, and takes it.
//! 2. **W2 before N2.** Then N3 sees the waiter's count: only W6 takes it back. If W3 read the
//!    epoch of N4, it is after N4 and W4 sees the thing. Else the ticket is from before N4: either
//!    the kernel finds the word changed, or the waiter is in the queue when N5 comes. N5 then wakes
//!    it or another, and whoever is woken goes to W3 and W4, and sleeps on only if the thing was
//!    taken.
//!
//! So that this holds whoever is woken must look (W4) before it gives
//! up at a deadline, and it does.
//!
//! A notifier makes a system call while anybody is counted, awake or not:
//! one that was woken and has not run yet may be in the middle of another
//! thing's work by then, and there may be others to do this one's.

use crate::sync::{AtomicU32, Ordering, fence, fence_after_rmw};

/// The two words. All bytes zero: nobody sleeps.
#[repr(C)]
#[derive(Debug)]
pub struct WakeOne {
    sleepers: AtomicU32,
    epoch: AtomicU32,
}

/// What the platform does for a waiter.
pub trait SleepOne {
    /// What can go wrong in a system call.
    type Error;

    /// Sleeps while `word` is `ticket`, until woken. False if the
    /// deadline passed. May return earlier for no reason.
    ///
    /// # Errors
    /// What the system call reported.
    fn sleep(&mut self, word: &AtomicU32, ticket: u32) -> Result<bool, Self::Error>;
}

impl WakeOne {
    /// Words on which nobody sleeps.
    pub fn new() -> Self {
        Self { sleepers: AtomicU32::new(0), epoch: AtomicU32::new(0) }
    }

    /// Notifier: must one be woken, for what was made true before
    /// this call? One fence and one load if nobody sleeps.
    #[must_use = "one sleeper is to be woken"]
    #[inline]
    pub fn announce(&self) -> bool {
        self.announce_with::<Complete>()
    }

    #[inline(always)]
    pub(crate) fn announce_with<S: Steps>(&self) -> bool {
        if S::FENCE_IN_ANNOUNCE {
            // N2. Pairs with W2.
            fence(Ordering::SeqCst);
        }
        // N3.
        if self.sleepers.load(Ordering::Relaxed) == 0 {
            return false;
        }
        if S::NEW_EPOCH {
            // N4. Release: pairs with W3.
            self.epoch.fetch_add(1, Ordering::Release);
        }
        true
    }

    /// The word on which they sleep.
    pub fn epoch(&self) -> &AtomicU32 {
        &self.epoch
    }

    /// Waiter: takes the thing by `take`, and sleeps while it is not
    /// there. `None` if the deadline came first.
    ///
    /// # Errors
    /// What the sleeper's system call reported. Nothing was taken.
    #[inline]
    pub fn take<R, S: SleepOne>(
        &self,
        sleeper: &mut S,
        take: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>, S::Error> {
        self.take_with::<Complete, R, S>(sleeper, take)
    }

    pub(crate) fn take_with<T: Steps, R, S: SleepOne>(
        &self,
        sleeper: &mut S,
        mut take: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>, S::Error> {
        if let Some(taken) = take() {
            return Ok(Some(taken));
        }
        // W1.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if T::FENCE_IN_TAKE {
            // W2. Pairs with N2.
            fence_after_rmw();
        }
        let result = self.sleep_until::<T, R, S>(sleeper, take);
        // W6. Relaxed: a notifier that still counts it makes a call for nothing.
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        result
    }

    fn sleep_until<T: Steps, R, S: SleepOne>(
        &self,
        sleeper: &mut S,
        mut take: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>, S::Error> {
        let mut awake = true;
        loop {
            // W3. Acquire: pairs with N4.
            let early = self.epoch.load(Ordering::Acquire);
            // W4.
            if let Some(taken) = take() {
                return Ok(Some(taken));
            }
            if !awake {
                return Ok(None);
            }
            let ticket = if T::TICKET_BEFORE_LOOK { early } else { self.epoch.load(Ordering::Acquire) };
            // W5.
            awake = sleeper.sleep(&self.epoch, ticket)?;
        }
    }
}

impl Default for WakeOne {
    fn default() -> Self {
        Self::new()
    }
}

/// Which steps are taken. Everything outside the tests takes [`Complete`]; the tests leave out one
/// at a time and show that the model checker notices.
pub(crate) trait Steps {
    const FENCE_IN_ANNOUNCE: bool = true;
    const NEW_EPOCH: bool = true;
    const FENCE_IN_TAKE: bool = true;
    const TICKET_BEFORE_LOOK: bool = true;
}

/// Every step.
pub(crate) struct Complete;
impl Steps for Complete {}

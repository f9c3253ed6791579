// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a sender has a fence of its own in each announcement, or
//! leaves it to the receiver's sleeps.
//!
//! The fence waits until all that was stored has left for the cache: for short messages it is most
//! of what a `send` costs. A receiver that sleeps pays for it instead by a call that interrupts the
//! sender's processor, which takes both a hundred times as long. So a sender begins with fences,
//! leaves them out after a thousand announcements at which nobody had to be woken, and takes them
//! back as soon as there is a wake-up within a few hundred.

use super::lane::Lane;
use crate::membarrier;
use doorbell_core::fault;
use std::sync::atomic::Ordering;

/// Announcements without a wake-up before the fences are left out:
/// more than three times what a barrier is worth.
const CALM: u32 = 1024;
/// A barrier costs both sides as much as so many fences (0.5 to 10 µs
/// and 7 µs, against some 30 ns each).
const WORTH: u64 = 300;

/// The state of one sender.
#[derive(Debug)]
pub(super) struct Fence {
    left_out: bool,
    /// Announcements since the last wake-up, while each has its fence.
    since: u32,
    /// The sender's index then.
    woke_at: u64,
    /// How many bytes one announced, in the middle of those before the fences were left out: after
    /// that nobody counts them.
    bytes: u64,
}

impl Fence {
    /// Of a sender whose index is `now`.
    pub(super) fn new(now: u64) -> Self {
        Self { left_out: false, since: 0, woke_at: now, bytes: 0 }
    }

    pub(super) fn is_left_out(&self) -> bool {
        self.left_out
    }

    /// With its fence another was announced, and nobody woken. True at the first that makes it
    /// worth while to call [`leave_out`](Self::leave_out).
    pub(super) fn is_calm(&mut self) -> bool {
        self.since = self.since.wrapping_add(1);
        self.since == CALM
    }

    /// If the receiver and this process can do without it, from the sender's index `now` on.
    #[cold]
    pub(super) fn leave_out(&mut self, now: u64, lane: &mut Lane) {
        let control = lane.control();
        let scope = lane.message_state.mapping().scope();
        // Acquire: pairs with the receiver's attachment. A successor that cannot is noticed by its word,
        // and fails to wait until then.
        if control.can_run_barrier.load(Ordering::Acquire) == 0 || !membarrier::register(scope) {
            return;
        }
        lane.message_state.record().wake.begin_unfenced();
        fault::point();
        // Behind the count: who dies in between is counted for ever,
        // which costs barriers for nothing, and no wake-up.
        control.unfenced.store(1, Ordering::Release);
        self.left_out = true;
        self.bytes = now.wrapping_sub(self.woke_at) / u64::from(CALM);
        lane.leave_out_fence(true);
    }

    /// Somebody was woken by an announcement up to the sender's index `now`.
    #[cold]
    pub(super) fn woke(&mut self, now: u64, lane: &mut Lane) {
        if now.wrapping_sub(self.woke_at) < self.bytes.saturating_mul(WORTH) {
            self.take_back(now, lane);
        }
        (self.since, self.woke_at) = (0, now);
    }

    /// From the sender's index `now` on there are fences again.
    pub(super) fn take_back(&mut self, now: u64, lane: &mut Lane) {
        if self.left_out {
            self.left_out = false;
            lane.leave_out_fence(false);
            fault::point();
            lane.control().unfenced.store(0, Ordering::Release);
            lane.message_state.record().wake.end_unfenced();
        }
        (self.since, self.woke_at) = (0, now);
    }
}

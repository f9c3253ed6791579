// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a sender has a fence of its own in each announcement, or leaves it to the receiver's sleeps.
//!
//! The fence waits until all that was stored has left for the cache: for short messages it is most of what a `send` costs.
//! A receiver that sleeps pays for it instead by a call that interrupts the sender's processor, which takes both a hundred
//! times as long. So a sender begins with fences, leaves them out after a thousand messages at which nobody had to be woken,
//! and takes them back as soon as there is a wake within a few hundred.

use super::lane::Lane;
use crate::membarrier;
use doorbell_core::fault;
use std::sync::atomic::Ordering;

/// Messages without a wake before the fences are left out: more than three times what a barrier is worth.
const CALM: u32 = 1024;
/// A barrier costs both sides as much as so many fences (0.5 to 10 µs and 7 µs, against some 30 ns each).
const WORTH: u32 = 300;

/// The state of one sender.
#[derive(Debug, Default)]
pub(super) struct Fence {
    left_out: bool,
    /// Messages since the last wake.
    since: u32,
}

impl Fence {
    #[inline(always)]
    pub(super) fn is_left_out(&self) -> bool {
        self.left_out
    }

    /// Another message was announced, and nobody woken. True at the first that makes it worth while to call
    /// [`leave_out`](Self::leave_out).
    #[inline(always)]
    pub(super) fn is_calm(&mut self) -> bool {
        self.since = self.since.wrapping_add(1);
        self.since == CALM
    }

    /// If the receiver and this process can do without it.
    #[cold]
    pub(super) fn leave_out(&mut self, lane: &Lane) {
        let control = lane.control();
        let scope = lane.message_state.mapping().scope();
        // Acquire: pairs with the receiver's attachment. A successor that cannot is noticed by its word, and fails to wait
        // until then.
        if self.left_out
            || control.can_run_barrier.load(Ordering::Acquire) == 0
            || !membarrier::register(scope)
        {
            return;
        }
        lane.message_state.record().wake.begin_unfenced();
        fault::point();
        // Behind the count: who dies in between is counted for ever, which costs barriers for nothing, and no wake-up.
        control.unfenced.store(1, Ordering::Release);
        self.left_out = true;
    }

    /// Somebody was woken.
    #[cold]
    pub(super) fn woke(&mut self, lane: &Lane) {
        if self.since < WORTH {
            self.take_back(lane);
        }
        self.since = 0;
    }

    /// From now on there are fences again.
    pub(super) fn take_back(&mut self, lane: &Lane) {
        if self.left_out {
            self.left_out = false;
            fault::point();
            lane.control().unfenced.store(0, Ordering::Release);
            lane.message_state.record().wake.end_unfenced();
        }
        self.since = 0;
    }
}

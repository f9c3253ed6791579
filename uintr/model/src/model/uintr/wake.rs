// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wake-up in its real steps, as `uintr/driver` does it: who is taken off a list is woken after
//! its lock, by the interrupt that took it off; who finds something at its own switch is woken by
//! an irq_work after that; and how a thread is woken depends on the call that it is in *then*.
//!
//! - In the wait call it is a plain wake-up: the call looks again whatever woke it.
//! - In another call it is a work (task_work with TWA_SIGNAL): calls sleep on unless there is what
//!   looks like a signal. The work has a bit, so that it is queued once: the bit is cleared first
//!   when it runs. The call ends, the work runs on the way to user mode, where the handler runs
//!   too, and the call begins anew.
//! - A call that runs works where it sleeps (io_uring_enter(2)) sleeps on after them, unless the
//!   work says otherwise.

use super::config::Wake;
use super::hazard::Hazard;
use super::machine::Machine;
use super::state::{At, Call, Place, Receiver, State};

impl Machine {
    /// The driver's `wake()`, of a thread that may have gone on meanwhile.
    pub(super) fn wake_up(&self, receiver: &mut Receiver) {
        if receiver.place == Place::Exited {
            return;
        }
        // Hazard H43: another call is woken as the wait call is.
        if receiver.call != Call::Wait && !self.has(Hazard::H43) {
            if receiver.work {
                return;
            }
            (receiver.work, receiver.notified) = (true, true);
        }
        receiver.interruptible = false;
        if receiver.place == Place::Asleep {
            receiver.place = Place::Ready;
        }
    }

    /// The irq_work that was queued at a receiver's own switch. It can be queued again before it
    /// does its work.
    pub(super) fn late(&self, state: &mut State, core: usize, r: usize) {
        let receiver = &mut state.receivers[r];
        debug_assert_eq!(usize::from(receiver.late), core + 1);
        if std::mem::take(&mut receiver.late_done) {
            receiver.late = 0;
            return;
        }
        // Hazard H44: an irq_work is free again behind its function.
        if self.has(Hazard::H44) {
            receiver.late_done = true;
        } else {
            receiver.late = 0;
        }
        self.wake_up(receiver);
    }

    /// In a call, interrupts on: TASK_INTERRUPTIBLE, then the call's checks, all in one step, since
    /// a wake between them is seen by the checks.
    pub(super) fn look(&self, state: &mut State, core: usize, r: usize) {
        let (c, receiver) = (&mut state.cores[core], &mut state.receivers[r]);
        let pending = c.uirr != 0 || receiver.pir != 0;
        let ends = match receiver.call {
            Call::None => unreachable!("it is in a call"),
            Call::Wait => pending || receiver.notified || receiver.over,
            Call::Other if receiver.over => true,
            Call::Other if receiver.notified && self.config.wake == Wake::InStepsRing => {
                // The work runs here.
                // Hazard H45: a work's bit is cleared on the way to user mode.
                (receiver.work, receiver.notified) = (self.has(Hazard::H45), false);
                // Hazard H46: a work that runs where the call sleeps does not end it.
                if !pending || self.has(Hazard::H46) {
                    return;
                }
                receiver.restart = true;
                true
            }
            Call::Other => {
                receiver.restart = receiver.notified;
                receiver.notified
            }
        };
        if !ends {
            receiver.interruptible = true;
            c.at = At::Schedule;
            return;
        }
        (receiver.call, receiver.over) = (Call::None, false);
        // Under H45 the bit that a work left is cleared here.
        receiver.work = receiver.notified;
        c.at = At::User;
    }
}

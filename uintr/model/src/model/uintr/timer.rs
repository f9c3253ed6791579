// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver's timer, by which the kernel sends to it: `uintr/driver/timer.c`.
//!
//! It is queued on the processor that the thread has, and stays there while the thread sleeps where
//! it can be reached. Its interrupt posts as SENDUIPI would. If the thread runs there, it then does
//! what the processor does with a notification: ON, then PIR into UIRR. Else it wakes the thread,
//! from whatever list it is on. On its way to a processor a thread waits for a timer whose function
//! is under way on another, and finds what is due.

use super::hazard::Hazard;
use super::machine::Machine;
use super::state::{Place, Receiver, State, TICK, Task, Ticking, Wrong};
use crate::cpu::notification;

impl Receiver {
    /// Queues the timer on a processor, if there is anything to come.
    pub(super) fn queue_timer(&mut self, core: usize) {
        self.timer = if self.ticks > 0 || self.tick_due { core as u8 + 1 } else { 0 };
    }

    /// By the thread, which ends. No function of it is under way: it would be on this processor.
    pub(super) fn stop_timer(&mut self, left_queued: bool) {
        self.ticks = 0;
        if !left_queued {
            (self.tick_due, self.timer) = (false, 0);
        }
    }

    /// On the way to a processor, before it is armed there.
    pub(super) fn find_due(&mut self, core: usize) {
        if std::mem::take(&mut self.tick_due) {
            self.pir |= 1 << TICK;
        }
        self.queue_timer(core);
    }
}

impl Machine {
    /// The timer's interrupt begins: the request goes into PIR.
    pub(super) fn expire(&self, state: &mut State, core: usize, r: u8) {
        let receiver = &mut state.receivers[usize::from(r)];
        if receiver.place == Place::Exited {
            state.wrong = Wrong::TimerFreed;
        }
        (receiver.timer, receiver.tick_due) = (0, false);
        receiver.pir |= 1 << TICK;
        let c = &mut state.cores[core];
        (c.ticking, c.ticked) = (Ticking::Notify, r);
    }

    /// It goes on, with interrupts off on its processor.
    pub(super) fn timer(&self, state: &mut State, core: usize) {
        let r = state.cores[core].ticked;
        if state.cores[core].ticking == Ticking::Wake {
            state.cores[core].ticking = Ticking::No;
            return self.wake_by_timer(state, core, usize::from(r));
        }
        let c = &mut state.cores[core];
        let runs_here = c.running == Task::Receiver(r);
        let receiver = &mut state.receivers[usize::from(r)];
        let (on, sn) = (receiver.on, receiver.sn);
        c.ticking = match c.ticking {
            Ticking::No | Ticking::Wake => {
                unreachable!("a timer's interrupt is under way, and was looked at")
            }
            Ticking::Notify if on || sn => Ticking::No,
            Ticking::Notify => {
                receiver.on = true;
                match runs_here {
                    // Hazard H40: a timer takes PIR before it clears ON.
                    true if self.has(Hazard::H40) => Ticking::Take,
                    true => Ticking::Clear,
                    // Hazard H39: a timer takes for a thread that is not there.
                    false if self.has(Hazard::H39) => Ticking::Clear,
                    false => Ticking::Wake,
                }
            }
            Ticking::Clear => {
                receiver.on = false;
                if self.has(Hazard::H40) { Ticking::No } else { Ticking::Take }
            }
            Ticking::Take => {
                let requests = std::mem::take(&mut receiver.pir);
                self.on_cpu(c, |cpu| notification::absorb(cpu, requests.into()));
                if self.has(Hazard::H40) { Ticking::Clear } else { Ticking::No }
            }
        };
        if c.ticking == Ticking::No && runs_here {
            receiver.queue_timer(core);
        }
    }

    /// From the list on which the thread is. If it is on none, it is on its way to a processor,
    /// where ON is looked at, or was told so by the last look. Nobody else on that list need be
    /// woken: who has ON has an interrupt under way.
    fn wake_by_timer(&self, state: &mut State, core: usize, r: usize) {
        let receiver = &state.receivers[r];
        // Hazard H42: a timer wakes who is on its own CPU's list.
        if receiver.queued && (receiver.ndst == self.ndst(core) || !self.has(Hazard::H42)) {
            self.wake(state, core, r);
        }
    }
}

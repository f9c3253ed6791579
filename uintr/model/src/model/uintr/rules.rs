// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold: outcomes in any state, the invariants I1 to I5,
//! and what a machine at rest must have done.

use super::machine::Machine;
use super::state::{At, Core, Irq, Place, Plug, Receive, Send, State, Task, Ticking, VECTORS, Wrong};
use crate::model::{Property, search::property};

/// ON means that somebody is on the way.
pub const I1: Property =
    property("I1", "ON is set, but no notification is under way and nobody will look at ON");
/// A running receiver's requests are announced.
pub const I2: Property =
    property("I2", "PIR holds a request for a running receiver, and nothing will tell its core");
/// A sleeper has nothing pending that no wake-up is under way for.
pub const I3: Property =
    property("I3", "a receiver sleeps with a request pending, or where no IPI reaches the kernel");
/// One core per UPID.
pub const I4: Property = property("I4", "two cores take notifications for the same UPID");
/// Senders are pointed at the right core.
pub const I5: Property = property("I5", "SN is clear, and NDST names another core than the receiver's");

/// Posted, never delivered.
pub const UNDELIVERED: Property =
    property("delivered", "a vector was posted and is never delivered, and nobody is going to notice");
/// The lost wake-up itself.
pub const SLEEPS_FOREVER: Property =
    property("woken", "the receiver sleeps for ever although it has been sent something");
/// An item nobody takes.
pub const ITEM_LEFT: Property =
    property("drained", "an item stays in the queue, and no interrupt is coming for it");
/// Quiescence of the descriptor.
pub const NOT_QUIET: Property =
    property("quiet", "all is delivered, but PIR, ON or UIRR is not zero: the next post sends no IPI");
/// A task that cannot finish.
pub const STUCK: Property = property("finishes", "a sender cannot finish");

impl Machine {
    pub(super) fn wrong(state: &State) -> Option<Property> {
        let (name, violation) = match state.wrong {
            Wrong::Nothing => return None,
            Wrong::RestoreFault => ("restores", "XRSTORS raises #GP in the kernel, for UINV is not zero"),
            Wrong::SendInvalid => {
                ("sends", "SENDUIPI raises #UD in a registered sender: the core has no table for it")
            }
            Wrong::SendStranger => {
                ("sends", "SENDUIPI goes through another task's table and posts to a stranger")
            }
            Wrong::SendFreed => ("memory", "SENDUIPI writes sixteen bytes into memory that was freed"),
            Wrong::SendReused => ("memory", "SENDUIPI posts into a descriptor that has a new owner"),
            Wrong::SendRevoked => {
                ("memory", "SENDUIPI posts a vector although the call that revoked it has returned")
            }
            Wrong::HandlerGone => ("handler", "a handler runs although its thread has ended the receiver"),
            Wrong::TableOverread => ("table", "SENDUIPI reads an entry behind the end of the table"),
            Wrong::TickSwallowed => {
                ("tick", "the kernel's timer tick is taken for a notification and never seen")
            }
            Wrong::TimerFreed => {
                ("memory", "a timer's interrupt uses what is left of a thread that has ended")
            }
        };
        Some(property(name, violation))
    }

    pub(super) fn broken_invariant(&self, state: &State) -> Option<Property> {
        (0..state.receivers.len()).find_map(|r| self.broken_for(state, r))
    }

    fn broken_for(&self, state: &State, r: usize) -> Option<Property> {
        let receiver = &state.receivers[r];
        if !receiver.alive() {
            return None;
        }
        let taking = |core: &Core| core.armed && usize::from(core.upid) == r + 1;
        if state.cores.iter().filter(|core| taking(core)).count() > 1 {
            return Some(I4);
        }
        let home = state.cores.iter().position(|core| core.running == Task::Receiver(r as u8));
        let destination = self.config.apic.destination(receiver.ndst.into()) as usize;
        // One that is on its way to sleep where the list is closed already is on the other's.
        let elsewhere = |home: usize| receiver.queued && state.cores[home].plug == Plug::Closed;
        if !receiver.sn
            && (receiver.queued || home.is_some())
            && home.is_some_and(|home| home != destination && !elsewhere(home))
        {
            return Some(I5);
        }
        let under_way = |irq: Irq, core: usize| {
            let c = &state.cores[core];
            let sending = (0..).zip(&state.senders).any(|(s, sender)| {
                sender.next == Send::Notify
                    && self.target(s, sender.sent).0 == r
                    && usize::from(sender.ipi_to) == core + 1
            });
            irq == Irq::Notify && c.self_ipi || c.in_flight[irq as usize] > 0 || sending
        };
        let ticking = |core: &Core| core.ticking != Ticking::No && usize::from(core.ticked) == r;
        let ticking = state.cores.iter().any(ticking);
        let waking = state.cores.iter().any(|core| core.waking & 1 << r != 0);
        match (receiver.place, home) {
            (Place::Asleep, None) if receiver.waking || receiver.paging || waking || receiver.late != 0 => {
                None
            }
            (Place::Asleep, None) => {
                let looked_at = state.cores.iter().any(|core| core.at == At::LookAfterMove);
                let told = ticking || receiver.on && (under_way(Irq::Kernel, destination) || looked_at);
                if receiver.on && !told {
                    return Some(I1);
                }
                let reachable = receiver.queued && receiver.nv_kernel && !receiver.sn;
                (receiver.saved_uirr != 0 || receiver.pir != 0 && !told || !reachable).then_some(I3)
            }
            (Place::Running, Some(home)) if state.cores[home].at == At::User => {
                let announced = under_way(Irq::Notify, home) || state.cores[home].taking || ticking;
                if receiver.on && !announced {
                    return Some(I1);
                }
                (receiver.pir != 0 && !announced).then_some(I2)
            }
            // Elsewhere the kernel has yet to go through the look at PIR and ON.
            _ => None,
        }
    }

    pub(super) fn undone(&self, state: &State) -> Option<Property> {
        state
            .receivers
            .iter()
            .enumerate()
            .filter(|(_, receiver)| receiver.alive())
            .find_map(|(r, receiver)| {
                let asleep = receiver.place == Place::Asleep;
                let due = receiver.due.contains(&true);
                let item = (0..VECTORS).any(|v| receiver.items[v] != 0 && !receiver.revoked[v]);
                let live_uirr =
                    state.cores.iter().find(|c| c.running == Task::Receiver(r as u8)).map_or(0, |c| c.uirr);
                let pending =
                    receiver.on || receiver.pir != 0 || receiver.saved_uirr != 0 && live_uirr == 0 && asleep;
                match () {
                    // In another system call than the wait call it
                    // does not sleep for what its handler is told.
                    () if asleep
                        && (due
                            || receiver.readable
                            || receiver.flag && receiver.next != Receive::Compute) =>
                    {
                        Some(SLEEPS_FOREVER)
                    }
                    () if due => Some(UNDELIVERED),
                    () if item => Some(ITEM_LEFT),
                    () if pending => Some(NOT_QUIET),
                    () => None,
                }
            })
            .or_else(|| {
                let unfinished = state.senders.iter().any(|sender| sender.place != Place::Exited);
                unfinished.then_some(STUCK)
            })
    }
}

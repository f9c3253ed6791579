// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tasks' own instructions do: the receiver's loop and
//! handler, the sender and the moments of SENDUIPI.

use super::config::{Patience, Sleep};
use super::hazard::Hazard;
use super::machine::{Machine, Stack};
use super::state::{At, Call, Irq, NOTIFY, Place, Plug, Receive, Send, Sender, State, Wrong, upid_address};
use crate::cpu::{Exception, flag, senduipi, uiret};
use crate::uitt::{UittEntry, VALID};

impl Machine {
    pub(super) fn receive(&self, state: &mut State, core: usize, r: usize) {
        let ndst = self.ndst(core);
        let (c, receiver) = (&mut state.cores[core], &mut state.receivers[r]);
        if receiver.signal != 0 {
            // sigreturn: back through the kernel, UIF from the frame record.
            // Hazard H12: UIF not kept across a signal.
            c.uif = receiver.signal == 2 && !self.has(Hazard::H12);
            receiver.signal = 0;
            return self.back_to_user(state, core);
        }
        if receiver.handling != 0 {
            let items = &mut receiver.items[usize::from(receiver.handling - 1)];
            // Hazard H19: one item per interrupt.
            *items = if self.has(Hazard::H19) { items.saturating_sub(1) } else { 0 };
            receiver.handling = 0;
            receiver.flag = true;
            return self
                .on_cpu(c, |cpu| uiret(cpu, &mut Stack { page_missing: false }))
                .expect("UIRET is enabled and its frame is mapped");
        }
        if std::mem::take(&mut receiver.restart) {
            receiver.call = Call::Other;
            c.at = At::WaitEntry;
            return;
        }
        receiver.next = match receiver.next {
            Receive::Register => {
                (receiver.on, receiver.sn, receiver.nv_kernel, receiver.pir, receiver.ndst) =
                    (false, false, false, 0, ndst);
                (c.upid, c.armed, c.uirr, c.uif) = (r as u8 + 1, true, 0, false);
                receiver.queue_timer(core);
                Receive::Open
            }
            Receive::Open => {
                // #UD here is hazard H17, and STUI then did not happen.
                let _ = self.on_cpu(c, flag::stui);
                Receive::Compute
            }
            Receive::Compute if self.config.patience == Patience::Spins => {
                receiver.flag = false;
                Receive::Compute
            }
            Receive::Compute => {
                // Hazard H4: wake-up consumed before the waiter blocks.
                if !self.has(Hazard::H4) {
                    let _ = self.on_cpu(c, flag::clui);
                }
                Receive::Look
            }
            Receive::Look => {
                if std::mem::take(&mut receiver.flag) {
                    Receive::Open
                } else {
                    Receive::Wait
                }
            }
            Receive::Wait => {
                c.at = At::WaitEntry;
                if self.config.wakes_in_steps() {
                    receiver.call = Call::Wait;
                }
                Receive::Open
            }
        };
    }

    /// Receiver and vector that the sender's n-th post goes to.
    pub(super) fn target(&self, sender: usize, sent: u8) -> (usize, usize) {
        let (r, v) = self.config.destination(sender as u8, sent);
        (usize::from(r), usize::from(v))
    }

    pub(super) fn send(&self, state: &mut State, core: usize, s: usize) {
        let sent = state.senders[s].sent;
        let (r, v) = self.target(s, sent);
        // Hazard H29: payload published after the post.
        let first = if self.config.payload && !self.has(Hazard::H29) { Send::Publish } else { Send::Fetch };
        let next = match state.senders[s].next {
            Send::Register => {
                state.cores[core].table = s as u8 + 1;
                Some(first)
            }
            Send::Publish => {
                state.receivers[r].items[v] += 1;
                if self.has(Hazard::H29) { self.after_post(state, s, first) } else { Some(Send::Fetch) }
            }
            Send::Fetch => self.fetch(state, core, s, first),
            Send::Post => self.post(state, core, s, first),
            Send::Notify => {
                let sender = &mut state.senders[s];
                let irq = if sender.ipi_kernel { Irq::Kernel } else { Irq::Notify };
                let core = usize::from(sender.ipi_to) - 1;
                (sender.ipi_to, sender.ipi_kernel) = (0, false);
                if state.cores[core].plug != Plug::OffLine {
                    state.cores[core].in_flight[irq as usize] += 1;
                }
                self.after_instruction(state, s, first)
            }
            Send::Probe => {
                let cpu = self.cpu(&state.cores[core]);
                if senduipi::entry_address(&cpu, self.config.entries().into()).is_ok() {
                    state.wrong = Wrong::TableOverread;
                }
                None
            }
        };
        match next {
            Some(next) => state.senders[s].next = next,
            None => {
                state.senders[s] = Sender { place: Place::Exited, ..Sender::default() };
                self.load_null(&mut state.cores[core]);
            }
        }
    }

    /// SENDUIPI, first and second moment: may this core send, and what does the entry say?
    fn fetch(&self, state: &mut State, core: usize, s: usize, first: Send) -> Option<Send> {
        let (r, v) = self.target(s, state.senders[s].sent);
        let (cpu, receiver) = (self.cpu(&state.cores[core]), &state.receivers[r]);
        // Index of the entry in this sender's table.
        match senduipi::entry_address(&cpu, (2 * r + v) as u64) {
            Err(Exception::InvalidOpcode) => state.wrong = Wrong::SendInvalid,
            Err(_) => unreachable!("every entry of the model lies within its table"),
            Ok(_) if usize::from(state.cores[core].table) != s + 1 => state.wrong = Wrong::SendStranger,
            Ok(_) => {
                let mut entry = UittEntry::new(upid_address(r as u8 + 1), v as u8);
                if receiver.revoked[v] {
                    entry.low &= !VALID;
                }
                return match senduipi::target(&cpu, entry) {
                    Ok(_) => Some(Send::Post),
                    // #GP: the program is told that the receiver has gone, and goes on.
                    Err(_) => self.after_instruction(state, s, first),
                };
            }
        }
        None
    }

    /// SENDUIPI, third moment: the locked update.
    pub(super) fn post(&self, state: &mut State, core: usize, s: usize, first: Send) -> Option<Send> {
        let (r, v) = self.target(s, state.senders[s].sent);
        let receiver = &mut state.receivers[r];
        if receiver.freed {
            state.wrong = Wrong::SendFreed;
        } else if state.senders[s].stale {
            state.wrong = Wrong::SendReused;
        }
        let cpu = self.cpu(&state.cores[core]);
        let (upid, ipi) = senduipi::post(&cpu, receiver.upid(), v as u8)
            .expect("the model's UPIDs have no reserved bit set");
        receiver.set_upid(upid);
        if receiver.retired[v] {
            state.wrong = Wrong::SendRevoked;
        }
        // What passed its entry before the driver's call returned is still delivered.
        let late =
            self.config.sleep == Sleep::AtSwitch && receiver.place != Place::Exited && !receiver.second_life;
        receiver.due[v] |= !receiver.revoked[v] || late;
        match ipi {
            Some(ipi) => {
                state.senders[s].ipi_to = ipi.destination as u8 + 1;
                state.senders[s].ipi_kernel = ipi.vector != NOTIFY;
                Some(Send::Notify)
            }
            None => self.after_instruction(state, s, first),
        }
    }

    /// Under H29 the item is published only now.
    fn after_instruction(&self, state: &mut State, s: usize, first: Send) -> Option<Send> {
        // Hazard H29: payload published after the post.
        let late = self.config.payload && self.has(Hazard::H29);
        if late { Some(Send::Publish) } else { self.after_post(state, s, first) }
    }

    fn after_post(&self, state: &mut State, s: usize, first: Send) -> Option<Send> {
        let sender = &mut state.senders[s];
        sender.sent += 1;
        match (sender.sent < self.config.posts, self.config.probe) {
            (true, _) => Some(first),
            (false, true) => Some(Send::Probe),
            (false, false) => None,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which steps are possible in a state, in the order in which the
//! fixed schedule of the search prefers them.

use super::config::{Patience, Sleep};
use super::hazard::Hazard;
use super::machine::{Action, Machine};
use super::state::{
    At, CPUS, Irq, Place, Plug, Receive, Receiver, Send, State, Task, Ticking, VECTORS, Wrong,
};
use crate::cpu::delivery;

impl Machine {
    pub(super) fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.wrong != Wrong::Nothing {
            return;
        }
        for core in 0..CPUS {
            self.core_actions(state, core, actions);
        }
        for (r, receiver) in state.receivers.iter().enumerate() {
            let under_way = (0..)
                .zip(&state.senders)
                .any(|(s, sender)| sender.next == Send::Post && self.target(s, sender.sent).0 == r);
            let retired =
                self.config.interference.exit && receiver.place == Place::Exited && receiver.registered();
            if receiver.waking {
                actions.push(Action::Wake(r as u8));
            }
            if receiver.ticks > 0 && !receiver.tick_due && receiver.alive() {
                actions.push(Action::Due(r as u8));
            }
            self.retirements(state, r, actions);
            if receiver.writes > 0 {
                actions.push(Action::Write(r as u8));
            }
            // A sender that is between reading its entry and posting has the descriptor in hand.
            // Hazard H14: stale post into a reused UPID.
            if retired && !receiver.freed && !receiver.second_life && (!under_way || self.has(Hazard::H14)) {
                actions.push(Action::Reuse(r as u8));
            }
        }
        // Last: it may take as long as it likes, but it comes.
        let missing = (0..).zip(&state.receivers).filter(|(_, receiver)| receiver.page_missing);
        actions.extend(missing.map(|(r, _)| Action::Page(r)));
        if self.config.interference.limit.is_none() || state.budget > 0 {
            self.interference(state, actions);
        }
    }

    /// The driver's revocation returns after an interrupt to every CPU on which somebody may be
    /// sending: no interrupt is taken in the middle of an instruction.
    fn retirements(&self, state: &State, r: usize, actions: &mut Vec<Action>) {
        let receiver = &state.receivers[r];
        let alive = receiver.alive() && !receiver.second_life;
        if self.config.sleep != Sleep::AtSwitch || !self.config.interference.revoke || !alive {
            return;
        }
        for v in (0..VECTORS).filter(|&v| receiver.revoked[v] && !receiver.retired[v]) {
            let under_way = (0..)
                .zip(&state.senders)
                .any(|(s, sender)| sender.next == Send::Post && self.target(s, sender.sent) == (r, v));
            // Hazard H34: a revocation that waits for nobody.
            if !under_way || self.has(Hazard::H34) {
                actions.push(Action::Retire(r as u8, v as u8));
            }
        }
    }

    fn core_actions(&self, state: &State, core: usize, actions: &mut Vec<Action>) {
        let (c, id) = (&state.cores[core], core as u8);
        if c.plug == Plug::OffLine {
            return;
        }
        if c.taking {
            return actions.push(Action::Take(id));
        }
        if c.ticking != Ticking::No {
            return actions.push(Action::Timer(id));
        }
        if c.waking != 0 {
            return actions.push(Action::WakeNext(id));
        }
        let late = |r: &Receiver| r.late == id + 1;
        if let Some(r) = state.receivers.iter().position(|r| late(r) && r.late_done) {
            return actions.push(Action::Late(id, r as u8));
        }
        let open = matches!(
            c.at,
            At::Idle
                | At::User
                | At::WaitEntry
                | At::FpuSection
                | At::Schedule
                | At::LookAtDescriptor
                | At::LookAtTriggered
                | At::Guest
        );
        let mut has_work = false;
        if open && !self.inside_instruction(state, core) {
            for (r, receiver) in (0..).zip(&state.receivers) {
                if late(receiver) {
                    actions.push(Action::Late(id, r));
                }
                if receiver.tick_due && receiver.timer == id + 1 {
                    actions.push(Action::Expire(id, r));
                }
            }
            // It looks like a signal, and comes before the next instruction.
            has_work = c.at == At::User
                && matches!(c.running, Task::Receiver(r) if state.receivers[usize::from(r)].notified);
            if has_work {
                actions.push(Action::Work(id));
            }
            for irq in Irq::ALL {
                let waiting = c.in_flight[irq as usize] + u8::from(irq == Irq::Notify && c.self_ipi);
                if waiting > 0 {
                    actions.push(Action::Accept(id, irq));
                }
                if waiting > 1 {
                    actions.push(Action::AcceptJoined(id, irq));
                }
            }
            // Interrupts come before the next instruction, user interrupts after ordinary ones (§6.2).
            if c.self_ipi && c.at != At::Idle {
                return;
            }
            if delivery::deliverable(&self.cpu(c)) {
                return actions.push(Action::Deliver(id));
            }
        }
        match c.at {
            At::User if has_work => {}
            // hrtimer_cancel(): until the timer's function is over.
            // Hazard H41: a timer on another CPU is not waited for.
            At::CancelTimer
                if !self.has(Hazard::H41)
                    && state.cores.iter().any(|other| {
                        other.ticking != Ticking::No && c.running == Task::Receiver(other.ticked)
                    }) => {}
            At::Idle => {
                let ready = |place: Place| place == Place::Ready;
                let receivers = (0..).zip(&state.receivers).filter(|(_, r)| ready(r.place));
                actions.extend(receivers.map(|(r, _)| Action::PickReceiver(id, r)));
                actions.extend(self.waiting_senders(state).map(|s| Action::PickSender(id, s)));
            }
            At::User => {
                let can_go_on = match c.running {
                    Task::Receiver(r) => {
                        let receiver = &state.receivers[usize::from(r)];
                        let spinning =
                            self.config.patience == Patience::Spins && receiver.next == Receive::Compute;
                        !spinning
                            || receiver.restart
                            || receiver.flag
                            || receiver.handling != 0
                            || receiver.signal != 0
                    }
                    Task::Sender(_) => true,
                    Task::None => false,
                };
                if can_go_on {
                    actions.push(Action::Run(id));
                } else if !state.cores.iter().any(|c| c.at == At::Idle && c.plug != Plug::OffLine) {
                    actions.extend(self.waiting_senders(state).map(|s| Action::Tick(id, s)));
                }
            }
            _ => actions.push(Action::Run(id)),
        }
    }

    /// Those that want a processor: a sender registers with
    /// descriptors that the receivers hand out.
    fn waiting_senders(&self, state: &State) -> impl Iterator<Item = u8> {
        let present = state.receivers.iter().take(self.config.receivers.into()).all(|r| r.registered());
        let senders = (0..).zip(state.senders);
        senders
            .filter(move |(_, s)| s.place == Place::Ready && (s.next != Send::Register || present))
            .map(|(s, _)| s)
    }

    /// A sender's SENDUIPI has read its entry or has posted, and is not complete.
    fn inside_instruction(&self, state: &State, core: usize) -> bool {
        matches!(state.cores[core].running, Task::Sender(s)
            if matches!(state.senders[usize::from(s)].next, Send::Post | Send::Notify))
    }

    fn interference(&self, state: &State, actions: &mut Vec<Action>) {
        let allowed = self.config.interference;
        for (core, c) in state.cores.iter().enumerate() {
            let id = core as u8;
            let in_interrupt = c.taking
                || c.ticking != Ticking::No
                || c.waking != 0
                || state.receivers.iter().any(|r| r.late == id + 1 && r.late_done);
            if in_interrupt || self.inside_instruction(state, core) {
                continue;
            }
            let in_user = c.at == At::User;
            if allowed.hot_plug && c.at == At::Idle {
                match c.plug {
                    Plug::OnLine if state.cores[1 - core].plug == Plug::OnLine => {
                        actions.push(Action::Close(id));
                    }
                    Plug::OnLine => {}
                    // What irq_work is queued there is done before.
                    Plug::Closed if state.receivers.iter().any(|r| r.late == id + 1) => {}
                    Plug::Closed => actions.push(Action::GoOffLine(id)),
                    Plug::OffLine => actions.push(Action::ComeBack(id)),
                }
            }
            if allowed.preempt
                && c.running != Task::None
                && (in_user || matches!(c.at, At::WaitEntry | At::Schedule | At::LookAtDescriptor))
            {
                actions.push(Action::Preempt(id));
            }
            let Task::Receiver(r) = c.running else { continue };
            let receiver = &state.receivers[usize::from(r)];
            if !in_user || !receiver.registered() {
                continue;
            }
            // It may block for whatever it likes, but does not between its check and the wait call.
            // No instruction begins where a user interrupt is delivered.
            if allowed.block
                && self.config.sleep == Sleep::AtSwitch
                && c.uif
                && receiver.next == Receive::Compute
                && !receiver.restart
                && !receiver.notified
                && !delivery::deliverable(&self.cpu(c))
            {
                actions.push(Action::Block(id));
            }
            if allowed.signal && receiver.signal == 0 {
                actions.push(Action::Signal(id));
            }
            // Hazard H38: a receiver runs a virtual CPU.
            if self.has(Hazard::H38) {
                actions.push(Action::EnterGuest(id));
            }
            if allowed.fpu {
                actions.push(Action::Fpu(id));
            }
            if allowed.exit && !receiver.second_life && receiver.handling == 0 {
                actions.push(Action::Exit(id));
            }
            // Hazard H17: CR4.UINTR lost.
            if self.has(Hazard::H17) && c.cr4_uintr {
                actions.push(Action::WriteCr4(id));
            }
        }
        for (r, receiver) in state.receivers.iter().enumerate() {
            let on_its_way = receiver.waking || self.config.wakes_in_steps();
            if allowed.time_out && receiver.place == Place::Asleep && (receiver.queued || on_its_way) {
                actions.push(Action::TimeOut(r as u8));
            }
            let alive = receiver.alive() && !receiver.second_life;
            if allowed.page && alive && !receiver.page_missing {
                actions.push(Action::TakePage(r as u8));
            }
            if allowed.revoke && alive {
                let open = (0..VECTORS).filter(|&v| !receiver.revoked[v]);
                actions.extend(open.map(|v| Action::Revoke(r as u8, v as u8)));
            }
        }
    }

    pub(super) fn interferes(action: Action) -> bool {
        matches!(
            action,
            Action::Preempt(_)
                | Action::TimeOut(_)
                | Action::Block(_)
                | Action::Signal(_)
                | Action::EnterGuest(_)
                | Action::Fpu(_)
                | Action::Revoke(..)
                | Action::TakePage(_)
                | Action::Exit(_)
                | Action::WriteCr4(_)
                | Action::Close(_)
                | Action::GoOffLine(_)
                | Action::ComeBack(_)
        )
    }
}

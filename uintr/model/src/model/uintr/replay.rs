// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a driver did, step by step, replayed through the machine: every step that it reports must
//! be one that the machine could take, from a state that agrees with everything reported before.
//!
//! A trace has the driver's steps only. What senders, processors and programs do
//! between two of them is open, so the replay keeps all states that are possible
//! and lets each of those happen in every way the machine allows: a post, an
//! interrupt of either vector (other receivers share both), a delivery, STUI and
//! CLUI. A step that fits none of the states is one that the model does not allow.
//!
//! One receiver is followed at a time, on the model's two processors,
//! with at most two user vectors.

use super::config::{Config, Patience, Resume, Sleep};
use super::machine::Machine;
use super::state::{At, Irq, Place, Receive, Send, State, Task, VECTORS};
use crate::cpu::{ApicMode, delivery};
use crate::model::trace::{self, Line, NOTIFY, ReplayError, Replayed, Vectors, WAKE};
use crate::upid::UpidValue;

/// What the driver does with a receiver: the names of its trace events after `uintr_`.
const EVENTS: [&str; 6] = ["out", "sleep", "late", "wake", "rise", "in"];

/// Follows every receiver of a trace in the text form of the kernel's tracefs.
///
/// ```
/// use doorbell_uintr::model::uintr::replay;
/// let trace = "\
///     a-1 [000] d.. 1.0: uintr_in: receiver=1 step=0 to=0 low=0000000000000002 pir=0 uirr=0 uif=0\n\
///     a-1 [000] d.. 1.1: uintr_out: receiver=1 step=1 to=-1 low=0000000000f00000 pir=0 uirr=1 uif=1\n\
///     a-1 [001] d.. 1.2: uintr_in: receiver=1 step=2 to=1 low=0000000000f00002 pir=0 uirr=1 uif=1\n";
/// assert_eq!(replay(trace)?.receivers, 1);
/// // A request that was in UIRR is gone.
/// let lost = trace.replace("to=1 low=0000000000f00002 pir=0 uirr=1", "to=1 low=0000000000f00002 pir=0 uirr=0");
/// assert!(lost != trace && replay(&lost).is_err());
/// # Ok::<(), doorbell_uintr::model::uintr::ReplayError>(())
/// ```
pub fn replay(trace: &str) -> Result<Replayed, ReplayError> {
    trace::replay(trace, ("receivers", ": uintr_"), &EVENTS, |receiver, lines| {
        Follower::new(receiver, lines)?.follow(receiver, lines)
    })
}

struct Follower {
    machine: Machine,
    vectors: Vectors,
}

impl Follower {
    fn new(receiver: u64, lines: &[Line]) -> Result<Self, ReplayError> {
        let vectors = Vectors::of(receiver, lines)?;
        // In xAPIC mode the ID is in bits 15:8 of NDST (H27).
        let x = lines.iter().any(|line| UpidValue { low: line.low, pir: 0 }.ndst() & 0xFF00 != 0);
        let config = Config {
            posts: u8::MAX,
            patience: Patience::Spins,
            resume: Resume::Direct,
            sleep: Sleep::AtSwitch,
            apic: if x { ApicMode::XApic } else { ApicMode::X2Apic },
            ..Config::SMALLEST
        };
        Ok(Self { machine: Machine { config, hazard: None }, vectors })
    }

    fn follow(&self, receiver: u64, lines: &[Line]) -> Result<usize, ReplayError> {
        // It has just registered; its first step puts it on a processor.
        let mut start = self.machine.initial();
        let registered = &mut start.receivers[0];
        (registered.next, registered.sn, registered.place) = (Receive::Compute, true, Place::Ready);
        trace::follow(
            receiver,
            lines,
            start,
            |state| self.unseen(state),
            |state, i| {
                let sleeps = lines.get(i + 1).is_some_and(|next| matches!(next.event, "sleep" | "late"));
                self.take(state, &lines[i], i == 0, sleeps)
            },
        )
    }

    /// The states after one step that is not the driver's.
    fn unseen(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        for vector in 0..self.vectors.all().end.max(1) {
            let mut posted = *state;
            // The table entry is not what is looked at here: a sender that has read it.
            posted.senders[0].sent = vector;
            self.machine.post(&mut posted, 0, 0, Send::Fetch);
            posted.senders[0] = state.senders[0];
            posted.receivers[0].due = [false; VECTORS];
            next.push(posted);
        }
        if state.receivers[0].waking {
            let mut woken = *state;
            (woken.receivers[0].waking, woken.receivers[0].place) = (false, Place::Ready);
            next.push(woken);
        }
        for (core, c) in state.cores.iter().enumerate() {
            // The driver itself runs with interrupts off.
            if !matches!(c.at, At::Idle | At::User) {
                continue;
            }
            let mut noticed = *state;
            self.machine.accept(&mut noticed, core, Irq::Notify);
            if noticed.cores[core].taking {
                self.machine.take(&mut noticed, core);
            }
            // The way back from an interrupt looks again in the model; here it has nothing to do.
            noticed.cores[core].at = c.at;
            next.push(noticed);
            if c.running != Task::Receiver(0) {
                continue;
            }
            if delivery::deliverable(&self.machine.cpu(c)) {
                let mut delivered = *state;
                self.machine.deliver(&mut delivered, core);
                delivered.receivers[0].handling = 0;
                next.push(delivered);
            }
            // STUI, CLUI, UIRET, and what signals do.
            let mut other = *state;
            other.cores[core].uif = !c.uif;
            next.push(other);
        }
        next
    }

    /// The states after this step, if the machine can take it in this state.
    fn take(&self, state: &State, line: &Line, first: bool, sleeps: bool) -> Vec<State> {
        match line.event {
            // Between list and look anybody may post.
            "sleep" | "late" => {
                let Some(listed) = self.listed(state, line) else { return Vec::new() };
                let looks = trace::closure([listed], |state| self.unseen(state));
                looks.into_iter().filter_map(|state| self.looked(state, line)).collect()
            }
            _ => self.taken(*state, line, first, sleeps).into_iter().collect(),
        }
    }

    fn home(state: &State) -> Option<usize> {
        state.cores.iter().position(|core| core.running == Task::Receiver(0))
    }

    /// Whether the UPID's low half is the one that was seen.
    fn shows(&self, state: &State, line: &Line, address: bool) -> bool {
        let (upid, receiver) = (UpidValue { low: line.low, pir: 0 }, &state.receivers[0]);
        let nv = if receiver.nv_kernel { WAKE } else { NOTIFY };
        let addressed = upid.nv() == nv && upid.ndst() == u32::from(receiver.ndst);
        (addressed || !address) && upid.on() == receiver.on && upid.sn() == receiver.sn
    }

    fn saved(&self, state: &State, line: &Line) -> bool {
        let receiver = &state.receivers[0];
        receiver.saved_uirr == self.vectors.bits(line.uirr) && receiver.saved_uif == line.uif
    }

    fn listed(&self, state: &State, line: &Line) -> Option<State> {
        let (core, mut state) = (Self::home(state)?, *state);
        if state.cores[core].at != At::ToSleep || usize::try_from(line.to) != Ok(core) {
            return None;
        }
        self.machine.run(&mut state, core);
        Some(state)
    }

    fn looked(&self, mut state: State, line: &Line) -> Option<State> {
        let visible = self.shows(&state, line, true) && self.saved(&state, line);
        let core = Self::home(&state)?;
        self.machine.run(&mut state, core);
        let late = state.receivers[0].waking;
        (visible && late == (line.event == "late")).then_some(state)
    }

    fn taken(&self, mut state: State, line: &Line, first: bool, sleeps: bool) -> Option<State> {
        let machine = &self.machine;
        if !self.shows(&state, line, !first) {
            return None;
        }
        match line.event {
            "out" => {
                let core = Self::home(&state)?;
                if state.cores[core].at != At::User {
                    return None;
                }
                if sleeps {
                    state.cores[core].at = At::WaitEntry;
                    machine.run(&mut state, core);
                } else {
                    machine.switch_out(&mut state, core);
                }
                self.saved(&state, line).then_some(state)
            }
            "wake" => {
                let slept = state.receivers[0].queued && self.saved(&state, line);
                machine.accept(&mut state, usize::try_from(line.to).ok()?, Irq::Kernel);
                (slept && !state.receivers[0].queued).then_some(state)
            }
            "rise" => {
                let slept = state.receivers[0].queued && self.saved(&state, line);
                let receiver = &mut state.receivers[0];
                (receiver.queued, receiver.sn, receiver.place) = (false, true, Place::Ready);
                slept.then_some(state)
            }
            "in" => {
                let core = usize::try_from(line.to).ok()?;
                let receiver = &state.receivers[0];
                let off = receiver.place == Place::Ready && !receiver.queued && Self::home(&state).is_none();
                if !off || receiver.pir != self.vectors.bits(line.requests) || receiver.saved_uif != line.uif
                {
                    return None;
                }
                machine.pick_receiver(&mut state, core, 0);
                while state.cores[core].at != At::User {
                    machine.run(&mut state, core);
                }
                (state.cores[core].uirr == self.vectors.bits(line.uirr)).then_some(state)
            }
            _ => None,
        }
    }
}

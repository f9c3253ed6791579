// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a driver did, step by step, replayed through the machine: every step that it reports must be one that the machine
//! could take, from a state that agrees with everything reported before.
//!
//! A trace has the driver's steps only. What senders, processors and programs do between two of them is open, so the
//! replay keeps all states that are possible and lets each of those happen in every way the machine allows: a post, an
//! interrupt of either vector (other receivers share both), a delivery, STUI and CLUI. A step that fits none of the
//! states is one that the model does not allow.
//!
//! One receiver is followed at a time, on the model's two processors, with at most two user vectors.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::config::{Config, Interference, Patience, Resume, Sleep};
use super::machine::Machine;
use super::state::{At, CPUS, Irq, Place, Receive, Send, State, Task, VECTORS};
use crate::cpu::{ApicMode, delivery};
use crate::upid::UpidValue;

/// What the driver does with a receiver; the names of its trace events behind `uintr_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Out,
    Sleep,
    Late,
    Wake,
    Rise,
    In,
}

impl Event {
    const ALL: [(&'static str, Self); 6] = [
        ("uintr_out", Self::Out),
        ("uintr_sleep", Self::Sleep),
        ("uintr_late", Self::Late),
        ("uintr_wake", Self::Wake),
        ("uintr_rise", Self::Rise),
        ("uintr_in", Self::In),
    ];
}

/// One line of a trace.
#[derive(Clone, Debug)]
struct Line {
    event: Event,
    receiver: u64,
    step: u64,
    /// The processor whose list it is on, or that it gets.
    to: i64,
    low: u64,
    pir: u64,
    uirr: u64,
    uif: bool,
    text: String,
}

/// Why a trace was not followed to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A line that is none.
    #[error("not a trace event of the driver: {0:?}")]
    Garbled(String),
    /// Events are missing.
    #[error("receiver {receiver}: step {step} is missing; give the trace a larger buffer")]
    Missing {
        /// The driver's number of the receiver.
        receiver: u64,
        /// The first step that is not there.
        step: u64,
    },
    /// More than the model has.
    #[error("receiver {receiver}: {what}; the model has {CPUS} processors and {VECTORS} user vectors")]
    TooLarge {
        /// The driver's number of the receiver.
        receiver: u64,
        /// What there is too much of.
        what: String,
    },
    /// The driver did what the model does not.
    #[error("the model does not allow: {line} (after {before}; {states} states were possible)")]
    Forbidden {
        /// The event.
        line: String,
        /// The one before.
        before: String,
        /// How many states agreed with everything up to there.
        states: usize,
    },
}

/// A trace that the model allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Receivers that were followed.
    pub receivers: usize,
    /// Steps of the driver, by event.
    pub events: BTreeMap<&'static str, u64>,
    /// The most states that were possible at a time.
    pub widest: usize,
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.events.values().sum();
        write!(f, "{total} steps of {} receivers, all allowed (", self.receivers)?;
        for (i, (name, count)) in self.events.iter().enumerate() {
            write!(f, "{}{name} {count}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, "); at most {} states possible at a time", self.widest)
    }
}

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
    let mut receivers: BTreeMap<u64, Vec<Line>> = BTreeMap::new();
    // Those of receivers without a handler are another protocol's (`model::polled`).
    let own = |text: &&str| {
        !text.starts_with('#') && text.contains(": uintr_") && !text.contains(": uintr_polled_")
    };
    for text in trace.lines().filter(own) {
        let line = parse(text).ok_or_else(|| ReplayError::Garbled(text.to_owned()))?;
        receivers.entry(line.receiver).or_default().push(line);
    }
    let mut replayed = Replayed { receivers: receivers.len(), events: BTreeMap::new(), widest: 0 };
    for (&receiver, lines) in &mut receivers {
        lines.sort_by_key(|line| line.step);
        for (line, step) in lines.iter().zip(0..) {
            if line.step != step {
                return Err(ReplayError::Missing { receiver, step });
            }
            let name = Event::ALL.iter().find(|(_, event)| *event == line.event).map_or("", |(name, _)| name);
            *replayed.events.entry(name).or_default() += 1;
        }
        let widest = Follower::new(receiver, lines)?.follow(lines)?;
        replayed.widest = replayed.widest.max(widest);
    }
    Ok(replayed)
}

fn parse(text: &str) -> Option<Line> {
    let (_, rest) = text.split_once(": uintr_")?;
    let (name, fields) = rest.split_once(": ")?;
    let (_, event) = Event::ALL.iter().find(|(known, _)| known.strip_prefix("uintr_") == Some(name))?;
    let fields: BTreeMap<&str, &str> =
        fields.split_ascii_whitespace().filter_map(|field| field.split_once('=')).collect();
    let decimal = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let hex = |name: &str| u64::from_str_radix(fields.get(name)?, 16).ok();
    Some(Line {
        event: *event,
        receiver: decimal("receiver")?,
        step: decimal("step")?,
        to: fields.get("to")?.parse().ok()?,
        low: hex("low")?,
        pir: hex("pir")?,
        uirr: hex("uirr")?,
        uif: decimal("uif")? != 0,
        text: format!("{name}: {}", text.split_once(": uintr_")?.1.split_once(": ")?.1),
    })
}

/// The driver's vectors: `NOTIFY` and `WAKE` of `kernel/uintr/driver.h`.
const DRIVERS_NOTIFY: u8 = 0xF0;
const DRIVERS_WAKE: u8 = 0xF7;

struct Follower {
    machine: Machine,
    receiver: u64,
    /// The user vectors that occur, lowest first.
    vectors: Vec<u32>,
}

impl Follower {
    fn new(receiver: u64, lines: &[Line]) -> Result<Self, ReplayError> {
        let used = lines.iter().fold(0, |used, line| used | line.pir | line.uirr);
        let vectors: Vec<u32> = (0..64).filter(|v| used >> v & 1 == 1).collect();
        let too_large = |what: String| ReplayError::TooLarge { receiver, what };
        if vectors.len() > VECTORS {
            return Err(too_large(format!("user vectors {vectors:?} are used")));
        }
        if let Some(line) = lines.iter().find(|line| line.to >= CPUS as i64) {
            return Err(too_large(format!("it comes to CPU {}", line.to)));
        }
        // In xAPIC mode the ID is in bits 15:8 of NDST (H27).
        let x = lines.iter().any(|line| UpidValue { low: line.low, pir: 0 }.ndst() & 0xFF00 != 0);
        let config = Config {
            name: "replay",
            receivers: 1,
            senders: 1,
            posts: u8::MAX,
            patience: Patience::Spins,
            resume: Resume::Direct,
            sleep: Sleep::AtSwitch,
            apic: if x { ApicMode::XApic } else { ApicMode::X2Apic },
            payload: false,
            probe: false,
            interference: Interference::default(),
        };
        Ok(Self { machine: Machine { config, hazard: None }, receiver, vectors })
    }

    fn vectors(&self, bits: u64) -> u8 {
        self.vectors.iter().zip(0..).map(|(&v, bit)| ((bits >> v & 1) as u8) << bit).sum()
    }

    fn follow(&self, lines: &[Line]) -> Result<usize, ReplayError> {
        // It has just registered; its first step puts it on a processor.
        let mut start = self.machine.initial();
        let receiver = &mut start.receivers[0];
        (receiver.next, receiver.sn, receiver.place) = (Receive::Compute, true, Place::Ready);
        let mut states = HashSet::from([start]);
        let (mut widest, mut before) = (1, "its registration");
        for (i, line) in lines.iter().enumerate() {
            let sleeps =
                lines.get(i + 1).is_some_and(|next| matches!(next.event, Event::Sleep | Event::Late));
            let possible = self.closure(&states);
            widest = widest.max(possible.len());
            let next: HashSet<State> =
                possible.iter().flat_map(|state| self.take(state, line, i == 0, sleeps)).collect();
            if next.is_empty() {
                let line = format!("{} of receiver {}", line.text, self.receiver);
                return Err(ReplayError::Forbidden {
                    line,
                    before: before.to_owned(),
                    states: possible.len(),
                });
            }
            (states, before) = (next, &line.text);
        }
        Ok(widest)
    }

    /// The states that can be reached without the driver.
    fn closure(&self, states: &HashSet<State>) -> HashSet<State> {
        let mut all = states.clone();
        let mut new: Vec<State> = states.iter().copied().collect();
        while let Some(state) = new.pop() {
            for next in self.unseen(&state) {
                if all.insert(next) {
                    new.push(next);
                }
            }
        }
        all
    }

    fn unseen(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        for vector in 0..self.vectors.len().max(1) as u8 {
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

    /// The states behind this step, if the machine can take it in this state.
    fn take(&self, state: &State, line: &Line, first: bool, sleeps: bool) -> Vec<State> {
        match line.event {
            // Between list and look anybody may post.
            Event::Sleep | Event::Late => {
                let Some(listed) = self.listed(state, line) else { return Vec::new() };
                let looks = self.closure(&HashSet::from([listed]));
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
        let nv = if receiver.nv_kernel { DRIVERS_WAKE } else { DRIVERS_NOTIFY };
        let addressed = upid.nv() == nv && upid.ndst() == u32::from(receiver.ndst);
        (addressed || !address) && upid.on() == receiver.on && upid.sn() == receiver.sn
    }

    fn saved(&self, state: &State, line: &Line) -> bool {
        let receiver = &state.receivers[0];
        receiver.saved_uirr == self.vectors(line.uirr) && receiver.saved_uif == line.uif
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
        (visible && late == (line.event == Event::Late)).then_some(state)
    }

    fn taken(&self, mut state: State, line: &Line, first: bool, sleeps: bool) -> Option<State> {
        let machine = &self.machine;
        if !self.shows(&state, line, !first) {
            return None;
        }
        match line.event {
            Event::Out => {
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
            Event::Wake => {
                let slept = state.receivers[0].queued && self.saved(&state, line);
                machine.accept(&mut state, usize::try_from(line.to).ok()?, Irq::Kernel);
                (slept && !state.receivers[0].queued).then_some(state)
            }
            Event::Rise => {
                let slept = state.receivers[0].queued && self.saved(&state, line);
                let receiver = &mut state.receivers[0];
                (receiver.queued, receiver.sn, receiver.place) = (false, true, Place::Ready);
                slept.then_some(state)
            }
            Event::In => {
                let core = usize::try_from(line.to).ok()?;
                let receiver = &state.receivers[0];
                let off = receiver.place == Place::Ready && !receiver.queued && Self::home(&state).is_none();
                if !off || receiver.pir != self.vectors(line.pir) || receiver.saved_uif != line.uif {
                    return None;
                }
                machine.pick_receiver(&mut state, core, 0);
                while state.cores[core].at != At::User {
                    machine.run(&mut state, core);
                }
                (state.cores[core].uirr == self.vectors(line.uirr)).then_some(state)
            }
            Event::Sleep | Event::Late => None,
        }
    }
}

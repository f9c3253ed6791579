// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what the driver did with receivers that have no handler, by its trace events, through the model.
//!
//! The driver tells when it arms a receiver, notices requests, takes one for a reader, and puts it to rest. Posts it does not see:
//! every state that agrees with what was told is kept, and a step that none of them can take is one that the model does not allow.

use super::config::{Config, Waiter};
use super::state::{At, Irq, State, VECTORS};
use super::steps::Polled;
use crate::upid::UpidValue;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// The driver's steps, by the names of its trace events behind `uintr_polled_`.
const EVENTS: [&str; 6] = ["arm", "notice", "take", "rest", "throttle", "unthrottle"];

/// `WAKE` of `kernel/uintr/driver.h`.
const DRIVERS_WAKE: u8 = 0xF7;

const CPUS: u64 = 2;

#[derive(Clone, Debug)]
struct Line {
    event: &'static str,
    step: u64,
    to: i64,
    low: u64,
    requests: u64,
    text: String,
}

/// Why a trace was not followed to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A line that is none.
    #[error("not a trace event of a receiver without a handler: {0:?}")]
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
    #[error("receiver {receiver}: {what}; the model has {CPUS} processors and {VECTORS} vectors")]
    TooLarge {
        /// The driver's number of the receiver.
        receiver: u64,
        /// What there is too much of.
        what: String,
    },
    /// The driver did what the model does not.
    #[error("the model does not allow: {line} of receiver {receiver}; {states} states were possible")]
    Forbidden {
        /// The driver's number of the receiver.
        receiver: u64,
        /// The event.
        line: String,
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
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.events.values().sum();
        write!(f, "{total} steps of {} receivers without a handler, all allowed (", self.receivers)?;
        for (i, (name, count)) in self.events.iter().enumerate() {
            write!(f, "{}{name} {count}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, ")")
    }
}

/// Follows every receiver without a handler of a trace in the text form of the kernel's tracefs; other events are left alone.
///
/// ```
/// use doorbell_uintr::model::polled::replay;
/// let trace = "\
///     a-1 [000] d.. 1.0: uintr_polled_arm: receiver=1 step=0 to=0 low=0000000000000002 requests=0\n\
///     a-1 [000] d.. 1.1: uintr_polled_notice: receiver=1 step=1 to=0 low=0000000000f70001 requests=20\n\
///     a-1 [000] d.. 1.1: uintr_polled_rest: receiver=1 step=2 to=-1 low=0000000000f70000 requests=0\n";
/// assert_eq!(replay(trace)?.receivers, 1);
/// // Nobody interrupts for a receiver that is at rest.
/// let wrong = trace.replace("polled_arm", "polled_rest");
/// assert!(replay(&wrong).is_err());
/// # Ok::<(), doorbell_uintr::model::polled::ReplayError>(())
/// ```
pub fn replay(trace: &str) -> Result<Replayed, ReplayError> {
    let mut receivers: BTreeMap<u64, Vec<Line>> = BTreeMap::new();
    for text in trace.lines().filter(|text| !text.starts_with('#') && text.contains(": uintr_polled_")) {
        let (receiver, line) = parse(text).ok_or_else(|| ReplayError::Garbled(text.to_owned()))?;
        receivers.entry(receiver).or_default().push(line);
    }
    let mut replayed = Replayed { receivers: receivers.len(), events: BTreeMap::new() };
    for (&receiver, lines) in &mut receivers {
        lines.sort_by_key(|line| line.step);
        for (line, step) in lines.iter().zip(0..) {
            if line.step != step {
                return Err(ReplayError::Missing { receiver, step });
            }
            *replayed.events.entry(line.event).or_default() += 1;
        }
        Follower::new(receiver, lines)?.follow(lines)?;
    }
    Ok(replayed)
}

fn parse(text: &str) -> Option<(u64, Line)> {
    let (_, rest) = text.split_once(": uintr_polled_")?;
    let (name, fields) = rest.split_once(": ")?;
    let event = EVENTS.into_iter().find(|event| *event == name)?;
    let fields: BTreeMap<&str, &str> =
        fields.split_ascii_whitespace().filter_map(|field| field.split_once('=')).collect();
    let hex = |name: &str| u64::from_str_radix(fields.get(name)?, 16).ok();
    let line = Line {
        event,
        step: fields.get("step")?.parse().ok()?,
        to: fields.get("to")?.parse().ok()?,
        low: hex("low")?,
        requests: hex("requests")?,
        text: rest.trim_end().to_owned(),
    };
    Some((fields.get("receiver")?.parse().ok()?, line))
}

struct Follower {
    polled: Polled,
    receiver: u64,
    /// The vectors that occur, lowest first.
    vectors: Vec<u32>,
}

impl Follower {
    fn new(receiver: u64, lines: &[Line]) -> Result<Self, ReplayError> {
        let used = lines.iter().fold(0, |used, line| used | line.requests);
        let vectors: Vec<u32> = (0..64).filter(|v| used >> v & 1 == 1).collect();
        let too_large = |what: String| ReplayError::TooLarge { receiver, what };
        if vectors.len() > VECTORS {
            return Err(too_large(format!("vectors {vectors:?} are used")));
        }
        if let Some(line) = lines.iter().find(|line| line.to >= CPUS as i64) {
            return Err(too_large(format!("it is armed on CPU {}", line.to)));
        }
        // Whoever arms or reads; a waiter of the model for each processor.
        let config = Config {
            name: "replay",
            waiters: [Some((Waiter::Polls, 0)); 2],
            senders: 1,
            posts: u8::MAX,
            vectors: 2,
            semaphore: false,
            time_out: false,
            hot_plug: false,
            throttles: false,
            limit: 0,
        };
        Ok(Self { polled: Polled { config, hazard: None }, receiver, vectors })
    }

    fn follow(&self, lines: &[Line]) -> Result<(), ReplayError> {
        let mut states = HashSet::from([self.polled.initial()]);
        for line in lines {
            let possible = self.posted(&states);
            let next: HashSet<State> = possible.iter().flat_map(|state| self.taken(*state, line)).collect();
            if next.is_empty() {
                return Err(ReplayError::Forbidden {
                    receiver: self.receiver,
                    line: line.text.clone(),
                    states: possible.len(),
                });
            }
            states = next;
        }
        Ok(())
    }

    /// The states behind any number of posts.
    fn posted(&self, states: &HashSet<State>) -> HashSet<State> {
        let mut all = states.clone();
        let mut new: Vec<State> = states.iter().copied().collect();
        while let Some(state) = new.pop() {
            for vector in 0..self.vectors.len() as u8 {
                let mut posted = state;
                posted.post(vector);
                posted.posted = [0; VECTORS];
                if all.insert(posted) {
                    new.push(posted);
                }
            }
        }
        all
    }

    fn requests(&self, bits: u64) -> u8 {
        self.vectors.iter().zip(0..).map(|(&v, bit)| ((bits >> v & 1) as u8) << bit).sum()
    }

    /// Whether the UPID's low half is the one that was seen. Before it is armed for the first time it names nobody.
    fn shows(state: &State, line: &Line) -> bool {
        let upid = UpidValue { low: line.low, pir: 0 };
        upid.on() == state.on && upid.sn() == state.sn && (state.sn || upid.nv() == DRIVERS_WAKE)
    }

    fn taken(&self, mut state: State, line: &Line) -> Vec<State> {
        if !Self::shows(&state, line) {
            return Vec::new();
        }
        let requests = self.requests(line.requests);
        match line.event {
            "arm" if !state.armed => {
                let Ok(w) = usize::try_from(line.to) else { return Vec::new() };
                state.waiters[w].at = At::Arm;
                self.polled.wait(&mut state, w);
                let looked = self.posted(&HashSet::from([quiet(state)]));
                looked.into_iter().filter(|state| state.pir == requests).collect()
            }
            "notice" if state.armed && !state.throttled && i64::from(state.to) == line.to && state.on => {
                let c = usize::from(state.to);
                state.cpus[c].irq = Irq::Begun;
                self.polled.handle(&mut state, c);
                self.noticed(state, c, requests)
            }
            "throttle" if state.armed && !state.throttled && i64::from(state.to) == line.to => {
                (state.throttled, state.sn) = (true, true);
                vec![state]
            }
            "unthrottle" if state.throttled => {
                let Ok(c) = usize::try_from(line.to) else { return Vec::new() };
                state.to = line.to as u8;
                self.polled.unthrottle(&mut state, c);
                self.noticed(state, c, requests)
            }
            "take" if requests.count_ones() == 1 && state.pir & requests != 0 => {
                state.pir &= !requests;
                vec![state]
            }
            "rest" if state.armed => {
                (state.sn, state.armed, state.throttled) = (true, false, false);
                vec![state]
            }
            _ => Vec::new(),
        }
    }

    /// The states behind the handler's look at PIR, which found `requests`.
    fn noticed(&self, state: State, c: usize, requests: u8) -> Vec<State> {
        self.posted(&HashSet::from([state]))
            .into_iter()
            .filter(|state| state.pir == requests)
            .map(|mut state| {
                self.polled.handle(&mut state, c);
                quiet(state)
            })
            .collect()
    }
}

/// What is left of a step that is over: who took it and what was counted is not followed.
fn quiet(state: State) -> State {
    State {
        on: state.on,
        sn: state.sn,
        to: state.to,
        pir: state.pir,
        armed: state.armed,
        throttled: state.throttled,
        ..State::default()
    }
}

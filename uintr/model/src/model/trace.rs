// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's steps, as the kernel's tracefs tells them in text, followed through a model.
//!
//! A trace has the driver's steps only. Every state that agrees with
//! what was told is kept, whatever may have come between, and a step
//! that none of them can take is one that the model does not allow.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::Hash;

/// The driver's vectors: `NOTIFY` and `WAKE` of `uintr/driver/driver.h`.
pub(super) const NOTIFY: u8 = 0xF0;
pub(super) const WAKE: u8 = 0xF7;

/// Processors and vectors that the models have.
const MOST: usize = 2;

/// One event of a receiver.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) event: &'static str,
    step: u64,
    /// The processor whose list it is on, or that it gets.
    pub(super) to: i64,
    pub(super) low: u64,
    /// What is in PIR, or was taken from there.
    pub(super) requests: u64,
    /// Of one with a handler.
    pub(super) uirr: u64,
    pub(super) uif: bool,
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
    #[error("receiver {receiver}: {what}; the model has {MOST} processors and {MOST} user vectors")]
    TooLarge {
        /// The driver's number of the receiver.
        receiver: u64,
        /// What there is too much of.
        what: String,
    },
    /// The driver did what the model does not.
    #[error(
        "the model does not allow: {line} of receiver {receiver} (after {before}; {states} states \
         were possible)"
    )]
    Forbidden {
        /// The driver's number of the receiver.
        receiver: u64,
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
    /// Whose steps they are.
    kind: &'static str,
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
        write!(f, "{total} steps of {} {}, all allowed (", self.receivers, self.kind)?;
        for (i, (name, count)) in self.events.iter().enumerate() {
            write!(f, "{}{name} {count}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, "); at most {} states possible at a time", self.widest)
    }
}

/// Reads the events whose names stand after `prefix`, and has `follow`
/// look at those of each receiver, in their order; it returns how many
/// states were possible at a time. Other events are left alone.
pub(super) fn replay(
    trace: &str,
    (kind, prefix): (&'static str, &str),
    events: &[&'static str],
    follow: impl Fn(u64, &[Line]) -> Result<usize, ReplayError>,
) -> Result<Replayed, ReplayError> {
    let mut receivers: BTreeMap<u64, Vec<Line>> = BTreeMap::new();
    let mut replayed = Replayed { kind, receivers: 0, events: BTreeMap::new(), widest: 0 };
    for text in trace.lines().filter(|text| !text.starts_with('#')) {
        // Those of receivers without a handler have a longer prefix.
        let Some(rest) =
            text.split_once(prefix).map(|(_, rest)| rest).filter(|rest| !rest.starts_with("polled_"))
        else {
            continue;
        };
        let (receiver, line) = parse(rest, events).ok_or_else(|| ReplayError::Garbled(text.to_owned()))?;
        *replayed.events.entry(line.event).or_default() += 1;
        receivers.entry(receiver).or_default().push(line);
    }
    replayed.receivers = receivers.len();
    for (receiver, mut lines) in receivers {
        lines.sort_by_key(|line| line.step);
        if let Some((_, step)) = lines.iter().zip(0..).find(|(line, step)| line.step != *step) {
            return Err(ReplayError::Missing { receiver, step });
        }
        replayed.widest = replayed.widest.max(follow(receiver, &lines)?);
    }
    Ok(replayed)
}

fn parse(rest: &str, events: &[&'static str]) -> Option<(u64, Line)> {
    let (name, values) = rest.split_once(": ")?;
    let &event = events.iter().find(|known| **known == name)?;
    let fields: BTreeMap<&str, &str> =
        values.split_ascii_whitespace().filter_map(|field| field.split_once('=')).collect();
    let hex = |name: &str| u64::from_str_radix(fields.get(name)?, 16).ok();
    let handler = fields.contains_key("pir");
    let line = Line {
        event,
        step: fields.get("step")?.parse().ok()?,
        to: fields.get("to")?.parse().ok()?,
        low: hex("low")?,
        requests: hex(if handler { "pir" } else { "requests" })?,
        uirr: if handler { hex("uirr")? } else { 0 },
        uif: handler && *fields.get("uif")? != "0",
        text: rest.trim_end().to_owned(),
    };
    Some((fields.get("receiver")?.parse().ok()?, line))
}

/// The vectors that occur, lowest first: the model's are as many.
pub(super) struct Vectors(Vec<u32>);

impl Vectors {
    /// Those of a receiver whose steps are no more than the models have room for.
    pub(super) fn of(receiver: u64, lines: &[Line]) -> Result<Self, ReplayError> {
        let used = lines.iter().fold(0, |used, line| used | line.requests | line.uirr);
        let vectors: Vec<u32> = (0..64).filter(|v| used >> v & 1 == 1).collect();
        let too_large = |what: String| ReplayError::TooLarge { receiver, what };
        if vectors.len() > MOST {
            return Err(too_large(format!("user vectors {vectors:?} are used")));
        }
        match lines.iter().find(|line| line.to >= MOST as i64) {
            Some(line) => Err(too_large(format!("it comes to CPU {}", line.to))),
            None => Ok(Self(vectors)),
        }
    }

    /// The model's bits for these of the driver.
    pub(super) fn bits(&self, bits: u64) -> u8 {
        self.0.iter().zip(0..).map(|(&v, bit)| ((bits >> v & 1) as u8) << bit).sum()
    }

    pub(super) fn all(&self) -> std::ops::Range<u8> {
        0..self.0.len() as u8
    }
}

/// The states that can be reached by steps that no trace shows.
pub(super) fn closure<S: Copy + Eq + Hash>(
    states: impl IntoIterator<Item = S>,
    unseen: impl Fn(&S) -> Vec<S>,
) -> HashSet<S> {
    let mut all: HashSet<S> = states.into_iter().collect();
    let mut new: Vec<S> = all.iter().copied().collect();
    while let Some(state) = new.pop() {
        for next in unseen(&state) {
            if all.insert(next) {
                new.push(next);
            }
        }
    }
    all
}

/// Follows one receiver's steps from `start`; `take` gives the states
/// after the line of that index.
pub(super) fn follow<S: Copy + Eq + Hash>(
    receiver: u64,
    lines: &[Line],
    start: S,
    unseen: impl Fn(&S) -> Vec<S>,
    take: impl Fn(&S, usize) -> Vec<S>,
) -> Result<usize, ReplayError> {
    let mut states = HashSet::from([start]);
    let (mut widest, mut before) = (1, "its registration");
    for (i, line) in lines.iter().enumerate() {
        let possible = closure(states, &unseen);
        widest = widest.max(possible.len());
        states = possible.iter().flat_map(|state| take(state, i)).collect();
        if states.is_empty() {
            let (line, before) = (line.text.clone(), before.to_owned());
            return Err(ReplayError::Forbidden { receiver, line, before, states: possible.len() });
        }
        before = &line.text;
    }
    Ok(widest)
}

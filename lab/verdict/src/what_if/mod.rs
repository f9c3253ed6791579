// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change would do at one edge of a program that was recorded: a pure function of the record
//! and of what waking costs on the machine.
//!
//! Whatever a record cannot know is refused, with the reason as a type.

mod batch;
mod costs;
mod mechanism;
mod pin;
mod record;
mod spin;
pub mod verify;

use std::time::Duration;

use self::record::{Which, found, waits};
use doorbell_results::anatomy::program::{By, Edge, MachineCosts, Program, Wait, Waker};
use doorbell_results::record::ResultFile;

pub use self::costs::{costs, listed};
pub use doorbell_results::record::change::Change;
pub use doorbell_results::record::question::{WhatIf, Within};

/// A thread that is awake for more than this share of the time has a
/// queue that the record does not show.
pub const BUSY: f64 = 0.30;
/// Wake-ups of the edge below which its record is too short.
pub const FEWEST: usize = 300;
/// By what factor the median sleep of one half of the record may differ from that of the other.
pub const STEADY: f64 = 1.5;

/// Edges of which the first screen says what would be cheaper.
const FIRST: usize = 2;

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The result is of no recorded program.
    NoProgram,
    /// It has no edge of that letter.
    NoEdge { edges: usize },
    /// The thread's wake-ups were not kept one by one.
    NotKept,
    /// Too few of the edge's wake-ups are there.
    TooShort { wakes: usize },
    /// The thread was awake for this share of the time.
    Busy { share: f64 },
    /// The median sleep of the first half and of the second, nanoseconds.
    Unsteady { halves_ns: [f64; 2] },
    /// Its waker ran on the only CPU.
    OneCpu,
    /// The result that was to say what spinning and sleeping cost has no round trips of a spinning
    /// and a sleeping waiter on two CPUs.
    NoCosts,
    /// It has none of this mechanism on one CPU, or on two.
    NoPrice { mechanism: String, same_cpu: bool },
    /// No spin up to the longest that was tried saves anything.
    NoGain { longest: Duration },
    /// Two different CPUs: where the two ran when they were recorded is not known.
    Apart,
    /// The machine has no such CPU.
    NoCpu { cpu: u32 },
    /// Its waker is no thread of the program.
    NoThread,
    /// Who woke, and when, was not recorded.
    WakesUnseen,
    /// It is known only of this share of the wake-ups how long the waker stayed on its CPU.
    WakerUnseen { share: f64 },
    /// The waker works on for so long after it woke, where a wake-up
    /// on one CPU takes so long, nanoseconds.
    WakerGoesOn { ran_ns: f64, wake_ns: f64 },
    /// Both would take this share of one CPU.
    TooBusyTogether { share: f64 },
    /// By what the edge wakes is no mechanism that can be measured apart.
    NotListed,
    /// It wakes by that already.
    SameMechanism { mechanism: String },
    /// What the change does to a wake-up was measured nowhere.
    Unpriced { change: Change },
}

impl Refusal {
    /// Whether the record refuses, whatever waking costs on the machine.
    fn is_of_the_record(&self) -> bool {
        let by_costs = Self::NoCosts == *self
            || matches!(self, Self::NoPrice { .. } | Self::NoGain { .. } | Self::WakerGoesOn { .. });
        !by_costs
    }
}

/// A change that was tried at the edge in a place; without one where
/// the best of its kind was sought and refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    pub place: usize,
    pub kind: Kind,
    pub found: Result<(Change, WhatIf), Refusal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Spin,
    Pin,
}

/// What `change` would do at the edge called `letter`.
pub fn what_if(
    result: &ResultFile,
    letter: &str,
    change: &Change,
    costs: &MachineCosts,
) -> Result<WhatIf, Refusal> {
    let program = program(result).ok_or(Refusal::NoProgram)?;
    let edges = program.edges.len();
    let place = (0..edges).find(|place| Edge::letter(*place).eq_ignore_ascii_case(letter));
    changed(result, program, place.ok_or(Refusal::NoEdge { edges })?, change, costs)
}

/// Why the record alone refuses to say what `change` would do, if it does: before costs are asked for
/// that nobody needs then.
pub fn refused(result: &ResultFile, letter: &str, change: &Change) -> Option<Refusal> {
    let found = what_if(result, letter, change, &MachineCosts::default());
    found.err().filter(Refusal::is_of_the_record)
}

fn changed(
    result: &ResultFile,
    program: &Program,
    place: usize,
    change: &Change,
    costs: &MachineCosts,
) -> Result<WhatIf, Refusal> {
    if program.edges[place].waker == Waker::Unseen {
        return Err(Refusal::WakesUnseen);
    }
    let usable = &result.machine.topology.usable;
    let ns = |time: &Duration| time.as_nanos() as f64;
    match change {
        Change::Spin(_) if usable.len() == 1 => Err(Refusal::OneCpu),
        Change::Spin(spin) => {
            let waits = waits(program, place, Which::Place)?;
            let apart = spin::apart(&program.edges[place], &waits, costs)?;
            found(&waits, |some| spin::replay(some, ns(spin), costs, apart))
        }
        Change::Pin([one, other]) => match [one, other].into_iter().find(|cpu| !usable.contains(**cpu)) {
            Some(cpu) => Err(Refusal::NoCpu { cpu: *cpu }),
            None if one != other => Err(Refusal::Apart),
            None => pin::pinned(program, place, costs),
        },
        Change::Mechanism(wanted) => mechanism::replaced(program, place, wanted, costs),
        Change::Batch(batch) => {
            let waits = waits(program, place, Which::Edge)?;
            found(&waits, |some| batch::replay(some, ns(batch), costs))
        }
        Change::Nice(_) | Change::Scheduler(_) | Change::TimerSlack(_) => {
            Err(Refusal::Unpriced { change: change.clone() })
        }
    }
}

/// What the best spin, and pinning waker and waiter to one CPU, would do at the worst edges, if the
/// result has what that cost.
pub fn first(result: &ResultFile) -> Vec<Tried> {
    let Some(program) = program(result) else { return Vec::new() };
    let Some(costs) = &program.machine_costs else { return Vec::new() };
    let own_time = |edge: &Edge| edge.mechanism.wait == Wait::Sleep && edge.mechanism.by == By::Timer;
    let told =
        |edge: &Edge| edge.wakes >= FEWEST as u64 && edge.sequence.is_some() && edge.waker != Waker::Unseen;
    let worst = program.edges.iter().enumerate().filter(|(_, edge)| !own_time(edge) && told(edge));
    let tried = |(place, edge): (usize, &Edge)| {
        let with =
            |change: Change| changed(result, program, place, &change, costs).map(|what_if| (change, what_if));
        let spin = waits(program, place, Which::Place)
            .and_then(|waits| spin::best(&waits, costs, spin::apart(edge, &waits, costs)?));
        let pin = result.machine.topology.usable.iter().next().ok_or(Refusal::Apart);
        [
            Tried { place, kind: Kind::Spin, found: spin.and_then(|spin| with(Change::Spin(spin))) },
            Tried { place, kind: Kind::Pin, found: pin.and_then(|cpu| with(Change::Pin([cpu, cpu]))) },
        ]
    };
    worst.take(FIRST).flat_map(tried).collect()
}

/// The program in `result`, if it is of one; of runs with a change and without it, as it is.
pub fn program(result: &ResultFile) -> Option<&Program> {
    let as_it_is = result.plan.configurations.first();
    let mut records = result.records.iter();
    records.find_map(|record| {
        as_it_is.filter(|first| **first == record.configuration)?;
        record.anatomy.as_ref()?.program.as_ref()
    })
}

#[cfg(test)]
mod tests;

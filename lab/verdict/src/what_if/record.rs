// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waits of an edge's thread, whether they can say anything, and
//! what stretches of them make of a change.

use super::{BUSY, FEWEST, Refusal, STEADY, WhatIf, Within};
use crate::statistics::median;
use doorbell_results::anatomy::program::{Edge, Program, Sequence, Wait};
use doorbell_results::record::rank::rank;

/// Stretches into which the record is cut, and how often a record is made of them by chance.
const STRETCHES: usize = 10;
const RESAMPLED: usize = 400;
/// By how much two times to one switch may differ in the record, nanoseconds.
const SWITCH_NS: f64 = 2.0;

/// One wait of a thread, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Waited {
    /// Whether it is one that would be changed.
    pub changed: bool,
    pub slept: f64,
    pub took: f64,
    pub awake: f64,
    /// How long the waker stayed on its CPU after it began to wake.
    pub waker_ran: Option<f64>,
}

/// Which waits of the edge's thread a change is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those in the same place, whoever ends them.
    Place,
    /// Those that the edge's waker ends.
    Edge,
}

/// The waits of the thread that `program`'s edge at `place` woke most.
pub(super) fn waits(program: &Program, place: usize, which: Which) -> Result<Vec<Waited>, Refusal> {
    let edge = &program.edges[place];
    let sequence = edge.sequence.and_then(|index| program.sequences.get(index as usize));
    let Sequence { edge: edges, slept_ns, took_ns, awake_ns, waker_ran_ns, .. } =
        sequence.ok_or(Refusal::NotKept)?;
    let same_place = |other: &Edge| {
        let (one, other) = (&edge.mechanism, &other.mechanism);
        one.wait == other.wait && (one.object == other.object || one.wait != Wait::Futex)
    };
    let changed: Vec<bool> = match which {
        Which::Place => program.edges.iter().map(same_place).collect(),
        Which::Edge => (0..program.edges.len()).map(|other| other == place).collect(),
    };
    let times = slept_ns.iter().zip(took_ns).zip(awake_ns);
    let waits = edges.iter().zip(times).enumerate().map(|(at, (edge, ((slept, took), awake)))| Waited {
        changed: changed.get(*edge as usize).copied().unwrap_or(false),
        slept: *slept as f64,
        took: *took as f64,
        awake: *awake as f64,
        waker_ran: waker_ran_ns.get(at).copied().flatten().map(|ns| ns as f64),
    });
    Ok(waits.collect())
}

/// The share of the time for which the thread was awake.
pub(super) fn busy(waits: &[Waited]) -> f64 {
    let lasted: f64 = waits.iter().map(Waited::lasted).sum();
    waits.iter().map(|wait| wait.awake).sum::<f64>() / lasted.max(1.0)
}

impl Waited {
    /// Whether the waiter came where its waker left: one switch is both then.
    pub(super) fn on_wakers_cpu(&self) -> bool {
        self.waker_ran.is_some_and(|ran| (ran - self.took).abs() <= SWITCH_NS)
    }

    pub(super) fn lasted(&self) -> f64 {
        self.slept + self.took + self.awake
    }
}

/// The share of the changed waits after which the thread came to its waker's CPU.
pub(super) fn shared(waits: &[Waited]) -> f64 {
    let changed = || waits.iter().filter(|wait| wait.changed);
    changed().filter(|wait| wait.on_wakers_cpu()).count() as f64 / changed().count().max(1) as f64
}

/// What a stretch of waits becomes.
#[derive(Debug, Default, Clone)]
pub(super) struct Replay {
    /// From arrival to the thread's next step, of each changed wait.
    pub took: Vec<f64>,
    /// Changed waits for which nobody sleeps any more.
    pub spared: usize,
    pub cpu: f64,
    /// How long the stretch lasted in the record.
    pub lasted: f64,
}

impl Replay {
    /// Of waits that keep their places, each changed one with what `becomes` says: how long it takes,
    /// and how much CPU time more.
    pub(super) fn each(waits: &[Waited], becomes: impl Fn(&Waited) -> (f64, f64)) -> Self {
        let lasted = waits.iter().map(Waited::lasted).sum();
        let (took, cpu): (Vec<f64>, Vec<f64>) = waits.iter().filter(|wait| wait.changed).map(becomes).unzip();
        Self { took, cpu: cpu.iter().sum(), lasted, spared: 0 }
    }
}

/// Whether the record can tell of a change to the waits that are marked.
pub(super) fn tells(waits: &[Waited]) -> Result<(), Refusal> {
    let slept: Vec<f64> = waits.iter().filter(|wait| wait.changed).map(|wait| wait.slept).collect();
    if slept.len() < FEWEST {
        return Err(Refusal::TooShort { wakes: slept.len() });
    }
    let busy = busy(waits);
    if busy > BUSY {
        return Err(Refusal::Busy { share: busy });
    }
    let (first, second) = slept.split_at(slept.len() / 2);
    let halves_ns = [first, second].map(|half| median(half).unwrap_or(0.0));
    let [least, most] = [halves_ns[0].min(halves_ns[1]), halves_ns[0].max(halves_ns[1])];
    if most > least.max(1.0) * STEADY {
        return Err(Refusal::Unsteady { halves_ns });
    }
    Ok(())
}

/// What `change` makes of the record's stretches.
pub(super) fn stretches(waits: &[Waited], change: impl Fn(&[Waited]) -> Replay) -> Vec<Replay> {
    waits.chunks(waits.len().div_ceil(STRETCHES).max(1)).map(change).collect()
}

/// What a change makes of a record that [`tells`] of it, with intervals.
pub(super) fn found(waits: &[Waited], change: impl Fn(&[Waited]) -> Replay) -> Result<WhatIf, Refusal> {
    tells(waits)?;
    let stretches = stretches(waits, change);
    let all = together(&stretches);
    let p50_now: Vec<f64> = waits.iter().filter(|wait| wait.changed).map(|wait| wait.took).collect();
    let wakes = p50_now.len();
    // Always the same, so that a file always says the same.
    let mut random = fastrand::Rng::with_seed(33);
    let mut drawn: Vec<[f64; 2]> = Vec::new();
    for _ in 0..RESAMPLED {
        let some = together((0..stretches.len()).map(|_| &stretches[random.usize(..stretches.len())]));
        // Stretches without a wait that is changed say nothing of one.
        if !some.took.is_empty() {
            drawn.push([middle(some.took), some.cpu / some.lasted.max(1.0)]);
        }
    }
    let within = |which: usize, value: f64| {
        let mut values: Vec<f64> = drawn.iter().map(|drawn| drawn[which]).collect();
        values.sort_by(f64::total_cmp);
        let at = |q: f64| values.get(rank(q, values.len() as u64) as usize - 1).copied().unwrap_or(value);
        Within { value, low: at(0.025).min(value), high: at(0.975).max(value) }
    };
    let cpu = all.cpu / all.lasted.max(1.0);
    Ok(WhatIf {
        wakes: wakes as u64,
        spared: all.spared as f64 / wakes as f64,
        p50_now_ns: middle(p50_now),
        p50_ns: within(0, middle(all.took)),
        cpu: within(1, cpu),
        busy: busy(waits),
    })
}

pub(super) fn together<'a>(stretches: impl IntoIterator<Item = &'a Replay>) -> Replay {
    stretches.into_iter().fold(Replay::default(), |mut all, one| {
        all.took.extend(&one.took);
        all.spared += one.spared;
        all.cpu += one.cpu;
        all.lasted += one.lasted;
        all
    })
}

pub(super) fn middle(mut values: Vec<f64>) -> f64 {
    let place = rank(0.5, values.len() as u64) as usize - 1;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(place, f64::total_cmp).1 }
}

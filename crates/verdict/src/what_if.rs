// SPDX-License-Identifier: MIT OR Apache-2.0
//! What spinning before sleeping would change at one edge of a program that was recorded: its sleeps gone through again.
//!
//! SUMMARY: each wait of the edge's thread in the same place begins when the thread has done what it had to do after the last wake-up.
//! What arrived until then is there already. What arrives within the spin is handed over at the price of spinning; what arrives later finds the
//! thread asleep and takes as long as it took in the record, and the spin was in vain.
//!
//! DETAILS: arrivals are the moments at which the kernel began to wake, so what comes while the thread is awake left no event. With a thread
//! that is busy for a small share of the time that is little, and the median is right; of the longest waits it is all, so p99 is never
//! predicted, and nothing is of a busy thread.

use std::time::Duration;

use crate::statistics::median;
use doorbell_results::anatomy::program::{Edge, Program, Sequence};
use doorbell_results::record::rank::rank;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{ResultFile, Variant};

/// A thread that is awake for more than this share of the time has a queue that the record does not show.
pub const BUSY: f64 = 0.30;
/// Wake-ups of the edge below which its record is too short.
pub const FEWEST: usize = 300;
/// By what factor the median sleep of one half of the record may differ from that of the other.
pub const STEADY: f64 = 1.5;
/// Stretches into which the record is cut, and how often a record is made of them by chance.
const STRETCHES: usize = 10;
const RESAMPLED: usize = 400;

/// What spinning and sleeping cost on the machine, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// From the waker's store to a spinning waiter's next step.
    pub hand_over_ns: f64,
    /// CPU time of waker and waiter for one sleep and its wake-up.
    pub sleep_ns: f64,
}

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
    /// The result that was to say what spinning and sleeping cost has no round trips of a spinning and a sleeping waiter on two CPUs.
    NoCosts,
}

/// What the change would make of the edge's waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WhatIf {
    /// Wake-ups that were gone through.
    pub wakes: usize,
    /// Of them, those that would come while the thread spins or has not begun to wait yet.
    pub caught: f64,
    /// The median from waking to running as recorded, nanoseconds.
    pub p50_now_ns: f64,
    /// The median that is predicted, with its 95 % interval.
    pub p50_ns: Within,
    /// CPU time more, as a share of one CPU, with its 95 % interval.
    pub cpu: Within,
    /// The share of the time for which the thread was awake.
    pub busy: f64,
}

/// A value within two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// What `result` says that spinning and sleeping cost: of all pairs of different CPUs the one on which sleeping costs least, as a spin is
/// never to cost more than the sleep that it replaces.
pub fn costs(result: &ResultFile) -> Result<Costs, Refusal> {
    let variants = result.variants();
    let apart = |variant: &&Variant| {
        variant.configuration.pattern.back_to_back()
            && variant.configuration.placement.cpus.is_some_and(|[one, other]| one != other)
    };
    let waits = |variant: &Variant, waits: Waits| {
        variant.subject().notification().is_some_and(|notification| notification.waits == waits)
    };
    let half = |variant: &Variant| Some(median(&variant.medians_ns(Quantity::RoundTrip))? / 2.0);
    let spins = |like: &Variant| {
        let same = |variant: &&Variant| {
            waits(variant, Waits::Spins) && variant.configuration.placement == like.configuration.placement
        };
        variants.iter().filter(apart).filter(same).filter_map(half).min_by(f64::total_cmp)
    };
    let both = |sleeper: &Variant| {
        Some(Costs { hand_over_ns: spins(sleeper)?, sleep_ns: sleeper.cpu_ns_per_wake()? })
    };
    let sleepers = variants.iter().filter(apart).filter(|variant| waits(variant, Waits::Blocks));
    let cheapest = sleepers.filter_map(both).min_by(|one, other| one.sleep_ns.total_cmp(&other.sleep_ns));
    cheapest.ok_or(Refusal::NoCosts)
}

/// What would change at the edge called `letter` if its waiter spun for `spin` before it sleeps.
pub fn what_if(result: &ResultFile, letter: &str, spin: Duration, costs: Costs) -> Result<WhatIf, Refusal> {
    let program = program(result).ok_or(Refusal::NoProgram)?;
    if result.machine.topology.usable.len() == 1 {
        return Err(Refusal::OneCpu);
    }
    let edges = program.edges.len();
    let place = (0..edges).find(|place| Edge::letter(*place).eq_ignore_ascii_case(letter));
    let place = place.ok_or(Refusal::NoEdge { edges })?;
    let edge = &program.edges[place];
    let sequence = edge.sequence.and_then(|index| program.sequences.get(index as usize));
    let sequence = sequence.ok_or(Refusal::NotKept)?;
    let waits = waits(program, edge, sequence);
    replayed(&waits, spin.as_nanos() as f64, costs)
}

/// The program in `result`, if it is of one.
pub fn program(result: &ResultFile) -> Option<&Program> {
    result.records.iter().find_map(|record| record.anatomy.as_ref()?.program.as_ref())
}

/// One wait of a thread, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Waited {
    /// Whether it is one that would spin.
    changed: bool,
    slept: f64,
    took: f64,
    awake: f64,
}

/// The waits of `sequence`: those would spin that wait as `edge` does, whoever ends them.
fn waits(program: &Program, edge: &Edge, sequence: &Sequence) -> Vec<Waited> {
    let changed: Vec<bool> = program
        .edges
        .iter()
        .map(|other| {
            let (one, other) = (&edge.mechanism, &other.mechanism);
            one.wait == other.wait
                && (one.object == other.object || one.wait != doorbell_results::anatomy::program::Wait::Futex)
        })
        .collect();
    let times = sequence.slept_ns.iter().zip(&sequence.took_ns).zip(&sequence.awake_ns);
    let one = |(edge, ((slept, took), awake)): (&u32, ((&u64, &u64), &u64))| Waited {
        changed: changed.get(*edge as usize).copied().unwrap_or(false),
        slept: *slept as f64,
        took: *took as f64,
        awake: *awake as f64,
    };
    sequence.edge.iter().zip(times).map(one).collect()
}

/// What a stretch of waits becomes.
#[derive(Debug, Default, Clone)]
struct Replay {
    /// From arrival to the thread's next step, of each changed wait.
    took: Vec<f64>,
    caught: usize,
    /// CPU time more.
    cpu: f64,
    /// How long the stretch lasted in the record.
    lasted: f64,
}

fn replayed(waits: &[Waited], spin: f64, costs: Costs) -> Result<WhatIf, Refusal> {
    let changed: Vec<&Waited> = waits.iter().filter(|wait| wait.changed).collect();
    if changed.len() < FEWEST {
        return Err(Refusal::TooShort { wakes: changed.len() });
    }
    let lasted: f64 = waits.iter().map(|wait| wait.slept + wait.took + wait.awake).sum();
    let busy = waits.iter().map(|wait| wait.awake).sum::<f64>() / lasted.max(1.0);
    if busy > BUSY {
        return Err(Refusal::Busy { share: busy });
    }
    let slept: Vec<f64> = changed.iter().map(|wait| wait.slept).collect();
    let (first, second) = slept.split_at(slept.len() / 2);
    let halves_ns = [first, second].map(|half| median(half).unwrap_or(0.0));
    let [least, most] = [halves_ns[0].min(halves_ns[1]), halves_ns[0].max(halves_ns[1])];
    if most > least.max(1.0) * STEADY {
        return Err(Refusal::Unsteady { halves_ns });
    }
    let stretches: Vec<Replay> =
        waits.chunks(waits.len().div_ceil(STRETCHES)).map(|stretch| replay(stretch, spin, costs)).collect();
    let all = together(stretches.iter());
    let p50_now: Vec<f64> = changed.iter().map(|wait| wait.took).collect();
    // Always the same, so that a file always says the same.
    let mut random = fastrand::Rng::with_seed(33);
    let mut drawn: Vec<[f64; 2]> = Vec::new();
    for _ in 0..RESAMPLED {
        let some = together((0..stretches.len()).map(|_| &stretches[random.usize(..stretches.len())]));
        // Stretches without a wait that would spin say nothing of one.
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
    let caught = all.caught as f64 / changed.len() as f64;
    let cpu = all.cpu / all.lasted.max(1.0);
    Ok(WhatIf {
        wakes: changed.len(),
        caught,
        p50_now_ns: middle(p50_now),
        p50_ns: within(0, middle(all.took)),
        cpu: within(1, cpu),
        busy,
    })
}

/// Goes through waits that follow one another.
fn replay(waits: &[Waited], spin: f64, costs: Costs) -> Replay {
    let mut replay = Replay::default();
    // When the thread begins to wait, in the record and as it would be.
    let (mut recorded, mut begins) = (0.0, 0.0_f64);
    for wait in waits {
        let arrival = recorded + wait.slept;
        let goes_on = if !wait.changed {
            arrival.max(begins) + wait.took
        } else if arrival <= begins {
            replay.caught += 1;
            replay.took.push(begins - arrival);
            replay.cpu -= costs.sleep_ns;
            begins
        } else if arrival - begins <= spin {
            replay.caught += 1;
            replay.took.push(costs.hand_over_ns);
            replay.cpu += arrival - begins + costs.hand_over_ns - costs.sleep_ns;
            arrival + costs.hand_over_ns
        } else {
            replay.took.push(wait.took);
            replay.cpu += spin;
            arrival + wait.took
        };
        recorded = arrival + wait.took + wait.awake;
        begins = goes_on + wait.awake;
    }
    replay.lasted = recorded;
    replay
}

fn together<'a>(stretches: impl Iterator<Item = &'a Replay>) -> Replay {
    stretches.fold(Replay::default(), |mut all, one| {
        all.took.extend(&one.took);
        all.caught += one.caught;
        all.cpu += one.cpu;
        all.lasted += one.lasted;
        all
    })
}

fn middle(mut values: Vec<f64>) -> f64 {
    let place = rank(0.5, values.len() as u64) as usize - 1;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(place, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    const COSTS: Costs = Costs { hand_over_ns: 240.0, sleep_ns: 5000.0 };

    fn waits(count: usize, slept: impl Fn(usize) -> f64, awake: f64) -> Vec<Waited> {
        (0..count).map(|at| Waited { changed: true, slept: slept(at), took: 30_000.0, awake }).collect()
    }

    #[test]
    fn a_spin_longer_than_every_sleep_turns_each_wake_up_into_a_hand_over() {
        let waits = waits(1000, |_| 10_000.0, 2000.0);
        let found = replayed(&waits, 20_000.0, COSTS).unwrap();
        // Without the 30 µs of a wake-up the thread waits so much longer for the next, and every second time too long.
        assert!((0.45..0.55).contains(&found.caught), "{found:?}");
        let found = replayed(&waits, 60_000.0, COSTS).unwrap();
        assert_eq!((found.caught, found.p50_ns.value, found.p50_now_ns), (1.0, 240.0, 30_000.0));
        assert!(found.cpu.value > 0.5, "it spins nearly all the time: {found:?}");
    }

    #[test]
    fn a_spin_shorter_than_every_sleep_costs_its_time_and_changes_nothing() {
        let found = replayed(&waits(1000, |_| 200_000.0, 2000.0), 20_000.0, COSTS).unwrap();
        assert_eq!((found.caught, found.p50_ns.value), (0.0, 30_000.0));
        let expected = 20_000.0 / 232_000.0;
        assert!((found.cpu.value - expected).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn waits_that_end_after_less_than_a_sleep_costs_save_time() {
        // Arrivals 1 µs after the thread begins to wait, wherever it is in time.
        let some = waits(1000, |_| 1000.0, 100.0);
        let mut first = replay(&some[..1], 10_000.0, COSTS);
        assert_eq!((first.caught, first.took.pop()), (1, Some(240.0)));
        assert!((first.cpu - (1000.0 + 240.0 - 5000.0)).abs() < 1e-9);
    }

    #[test]
    fn what_a_record_cannot_know_is_refused_with_the_reason() {
        let few = waits(FEWEST - 1, |_| 10_000.0, 100.0);
        assert_eq!(replayed(&few, 1000.0, COSTS), Err(Refusal::TooShort { wakes: FEWEST - 1 }));
        let busy = waits(1000, |_| 10_000.0, 60_000.0);
        assert!(matches!(replayed(&busy, 1000.0, COSTS), Err(Refusal::Busy { share }) if share > 0.5));
        let other = waits(1000, |at| if at < 500 { 10_000.0 } else { 20_000.0 }, 100.0);
        let halves_ns = [10_000.0, 20_000.0];
        assert_eq!(replayed(&other, 1000.0, COSTS), Err(Refusal::Unsteady { halves_ns }));
        let ping = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        assert_eq!(what_if(&ping, "A", Duration::from_micros(1), COSTS), Err(Refusal::NoProgram));
        assert_eq!(costs(&ping), Err(Refusal::NoCosts), "nothing in it spins");
    }

    #[test]
    fn other_waits_of_the_thread_go_on_as_they_were() {
        let mut waits = waits(1000, |_| 10_000.0, 100.0);
        waits.iter_mut().step_by(2).for_each(|wait| wait.changed = false);
        let found = replayed(&waits, 60_000.0, COSTS).unwrap();
        assert_eq!(found.wakes, 500);
        assert_eq!(found.caught, 1.0);
    }

    #[test]
    fn costs_are_those_of_the_two_cpus_between_which_sleeping_is_cheapest() {
        let on = |subject: &str, cpus| {
            let mut configuration = sample::configuration(subject);
            configuration.placement.cpus = Some(cpus);
            configuration
        };
        let configurations = [
            on("futex", [0, 0]),
            on("futex", [0, 1]),
            on("spin", [0, 1]),
            on("futex", [0, 9]),
            on("spin", [0, 9]),
        ];
        let result = sample::result(&configurations, 2, |configuration, _| {
            let spins = configuration.subject == "spin";
            match configuration.placement.cpus {
                Some([0, 0]) => 2000.0,
                Some([0, 1]) => {
                    if spins {
                        400.0
                    } else {
                        9000.0
                    }
                }
                _ => {
                    if spins {
                        600.0
                    } else {
                        30_000.0
                    }
                }
            }
        });
        let found = costs(&result).unwrap();
        assert!((200.0..300.0).contains(&found.hand_over_ns), "{found:?}");
        assert!(found.sleep_ns > 1000.0 && found.sleep_ns < 30_000.0, "{found:?}");
    }
}

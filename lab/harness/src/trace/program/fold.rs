// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes what people read of a graph of tasks: threads of one name are one, times are picoseconds,
//! and of all edges those stay that took most.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::graph::{Graph, Lived, Passed, Ready, Times, Who};
use super::slowest::Chosen;
use doorbell_results::anatomy::program::{
    By, Convoy, Edge, Herd, Mechanism, Object, Program, Sequence, Threads, Wait, Waker,
};
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::{Histogram, Series};

/// Wake-ups below which an edge is a rare one.
const FEW: usize = 10;
/// Threads that must both wait on and wake a futex to be a convoy.
const CONVOY: usize = 3;
/// Edges that are kept.
const EDGES: usize = 40;
/// Edges of which the thread that they woke most is kept wake-up by wake-up.
const SEQUENCES: usize = 12;
/// The slowest wake-ups of such an edge that are kept whole.
const SLOWEST: usize = 5;
/// Wake-ups that are kept of a thread: minutes of most programs, and half a megabyte of the file.
const PASSED: usize = 20_000;

/// Edges of one waker's, waiter's and mechanism's name.
#[derive(Debug, Default)]
struct Folded {
    times: Times,
    /// By task, how often it was woken.
    tasks: BTreeMap<i32, usize>,
    /// Places in the graph.
    places: Vec<usize>,
}

impl Folded {
    fn took(&self) -> u64 {
        self.times.wakes.iter().map(|[_, took]| took).sum()
    }
}

/// What a graph is folded to.
#[derive(Debug)]
pub struct Fold {
    /// Its threads, edges, herds and sequences; the rest is the recorder's to say.
    pub program: Program,
    pub chosen: Vec<Chosen>,
    /// The place of each wake-up's edge, by its thread and when that went to sleep, in ticks; of
    /// further edges it is none.
    pub edges: HashMap<(i32, u64), usize>,
}

/// Folds `graph`; of the wake-ups that are `sought` the edge's place is told.
pub fn fold(
    mut graph: Graph,
    names: &HashMap<i32, String>,
    clock: Clock,
    sought: impl Fn(i32, u64) -> bool,
) -> Fold {
    let convoys = convoys(&graph, names);
    let name = |task: i32| names.get(&task).cloned().unwrap_or_else(|| format!("task {task}"));
    let mut folded: BTreeMap<(Waker, String, Mechanism), Folded> = BTreeMap::new();
    for (place, (key, times)) in graph.edges.iter_mut().enumerate() {
        let waker = match key.waker {
            Who::Kernel => Waker::Kernel,
            Who::Unseen => Waker::Unseen,
            Who::Task(task) if graph.threads.contains_key(&task) => Waker::Thread { name: name(task) },
            Who::Task(task) => Waker::Outside { name: name(task) },
        };
        let into = folded.entry((waker, name(key.waiter), key.mechanism.clone())).or_default();
        into.places.push(place);
        *into.tasks.entry(key.waiter).or_default() += times.wakes.len();
        into.times.ran_out += times.ran_out;
        into.times.rescued += times.rescued;
        into.times.wakes.append(&mut times.wakes);
    }
    let mut folded: Vec<_> = folded.into_iter().collect();
    // What happened a few times comes after what goes on, and last a
    // sleeper's own clock: nobody else's work waited for it.
    let own_time = |mechanism: &Mechanism| mechanism.wait == Wait::Sleep && mechanism.by == By::Timer;
    folded.sort_by_cached_key(|((_, _, mechanism), edge)| {
        let (took, wakes) = (edge.took(), edge.times.wakes.len());
        (own_time(mechanism), wakes < FEW, std::cmp::Reverse((took, wakes)))
    });
    let further = folded.split_off(folded.len().min(EDGES));
    let mut place_of = vec![folded.len(); graph.edges.len()];
    for (edge, (_, one)) in folded.iter().enumerate() {
        one.places.iter().for_each(|place| place_of[*place] = edge);
    }
    let mut sequences: Vec<Sequence> = Vec::new();
    let mut edges = Vec::new();
    let mut chosen = Vec::new();
    for (number, ((waker, waiter, mechanism), one)) in folded.into_iter().enumerate() {
        let busiest = one.tasks.iter().max_by_key(|(_, wakes)| **wakes).map(|(task, _)| *task);
        let sequence = busiest.filter(|_| number < SEQUENCES).and_then(|task| {
            let there = sequences.iter().position(|sequence| sequence.task == task);
            let place = there.unwrap_or_else(|| {
                let passed = graph.threads.get(&task).map_or(&[][..], |thread| &thread.passed);
                sequences.push(sequence(task, name(task), passed, &place_of, clock));
                sequences.len() - 1
            });
            u32::try_from(place).ok()
        });
        if number < SEQUENCES {
            chosen.extend(slowest(&graph, number, one.tasks.keys(), &place_of));
        }
        // When it began to be woken was not seen, and no time from there.
        let took = match waker {
            Waker::Unseen => Series::from(&Histogram::untouched()),
            _ => series(&one.times, 1, clock),
        };
        edges.push(Edge {
            waker,
            waiter,
            mechanism,
            wakes: one.times.wakes.len() as u64,
            ran_out: one.times.ran_out,
            rescued: one.times.rescued,
            slept: series(&one.times, 0, clock),
            took,
            sequence,
            slowest: Vec::new(),
            sampled: 0,
            stacks: Vec::new(),
        });
    }
    let earliest = sequences.iter().map(|sequence| sequence.begins_ns).min().unwrap_or(0);
    sequences.iter_mut().for_each(|sequence| sequence.begins_ns -= earliest);
    let program = Program {
        convoys,
        wakes: graph.wakes,
        ended_by_action: graph.ended_by_action,
        incomplete: graph.incomplete,
        threads: threads(&graph, name, clock),
        further_wakes: further.iter().map(|(_, edge)| edge.times.wakes.len() as u64).sum(),
        herds: herds(&graph, name),
        edges,
        sequences,
        ..Program::default()
    };
    let passed = graph.threads.iter().flat_map(|(task, one)| one.passed.iter().map(|passed| (*task, passed)));
    let sought = passed.filter(|(task, passed)| sought(*task, passed.slept));
    let kept = |(task, passed): (i32, &Passed)| {
        let edge = place_of[passed.edge];
        (edge < program.edges.len()).then_some(((task, passed.slept), edge))
    };
    let edges = sought.filter_map(kept).collect();
    Fold { program, chosen, edges }
}

/// The slowest wake-ups of the edge in a place, the slowest first.
fn slowest<'a>(
    graph: &Graph,
    edge: usize,
    tasks: impl Iterator<Item = &'a i32>,
    place_of: &[usize],
) -> Vec<Chosen> {
    let mut all = Vec::new();
    for waiter in tasks {
        let passed = graph.threads.get(waiter).map_or(&[][..], |thread| &thread.passed);
        let numbered = (1..).zip(passed).filter(|(_, one)| place_of[one.edge] == edge);
        all.extend(numbered.map(|(number, one)| {
            let Passed { edge: place, slept, waking, came, told, .. } = *one;
            let waker = match graph.edges[place].0.waker {
                Who::Task(task) => Some(task),
                Who::Kernel | Who::Unseen => None,
            };
            Chosen { edge, number, waker, waiter: *waiter, slept, told, waking, came }
        }));
        all.sort_by_key(|one| std::cmp::Reverse(one.came.saturating_sub(one.waking)));
        all.truncate(SLOWEST);
    }
    all
}

/// All wake-ups of a program, however they are folded: from waking to running.
pub fn took(program: &Program) -> Series {
    let mut all = Histogram::untouched();
    for series in program.edges.iter().map(|edge| &edge.took) {
        if let Ok(counters) = series.counters() {
            all.add_counters(&counters);
        }
    }
    Series::from(&all)
}

fn series(times: &Times, which: usize, clock: Clock) -> Series {
    let mut histogram = Histogram::untouched();
    times.wakes.iter().for_each(|wake| histogram.record(clock.ps(wake[which])));
    Series::from(&histogram)
}

fn sequence(task: i32, name: String, passed: &[Passed], place_of: &[usize], clock: Clock) -> Sequence {
    let ns = |ticks: u64| clock.ps(ticks) / 1000;
    let begins_ns = passed.first().map_or(0, |first| ns(first.slept));
    let mut sequence = Sequence { task, name, begins_ns, ..Sequence::default() };
    // How long it was awake after the last is not known: the record ends there.
    for pair in passed.windows(2).take(PASSED) {
        let [one, next] = pair else { continue };
        // What it did between two slices is not known either.
        if one.slice != next.slice {
            continue;
        }
        sequence.edge.push(u32::try_from(place_of[one.edge]).unwrap_or(u32::MAX));
        sequence.slept_ns.push(ns(one.waking.saturating_sub(one.slept)));
        sequence.took_ns.push(ns(one.came.saturating_sub(one.waking)));
        sequence.awake_ns.push(ns(next.slept.saturating_sub(one.came)));
        sequence.waker_ran_ns.push(one.waker_ran.map(ns));
    }
    sequence
}

fn threads(graph: &Graph, name: impl Fn(i32) -> String, clock: Clock) -> Vec<Threads> {
    // With how long they were ready, picoseconds, over so many wake-ups.
    let mut by_name: BTreeMap<String, (Threads, Option<[u64; 2]>)> = BTreeMap::new();
    for (task, Lived { ran, passed, asked_in_vain, ready: waited }) in &graph.threads {
        let (all, ready) = by_name.entry(name(*task)).or_default();
        if let Some(Ready { waited, wakes }) = waited {
            let [ps, before] = ready.unwrap_or_default();
            *ready = Some([ps + clock.ps(*waited), before + wakes]);
        }
        all.count += 1;
        all.ran_ns += clock.ps(*ran) / 1000;
        all.wakes += passed.len() as u64;
        all.asked_in_vain += asked_in_vain;
    }
    let threads = |(name, (threads, ready)): (String, (Threads, Option<[u64; 2]>))| {
        let ready_mean_ns = ready.map(|[ps, wakes]| ps as f64 / 1e3 / wakes.max(1) as f64);
        Threads { name, ready_mean_ns, ..threads }
    };
    let mut all: Vec<Threads> = by_name.into_iter().map(threads).collect();
    all.sort_by_key(|threads| std::cmp::Reverse(threads.wakes));
    all
}

fn herds(graph: &Graph, name: impl Fn(i32) -> String) -> Vec<Herd> {
    let mut by_name: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for ((waker, first), (calls, woken)) in &graph.herds {
        let all = by_name.entry((name(*waker), name(*first))).or_default();
        all.0 += calls;
        all.1 += woken;
    }
    let herd = |((waker, waiter), (calls, woken))| Herd { waker, waiter, calls, woken };
    let mut all: Vec<Herd> = by_name.into_iter().map(herd).collect();
    all.sort_by_key(|herd| std::cmp::Reverse(herd.woken));
    all
}

/// Futexes that threads both wait on and wake, those with most wake-ups first.
fn convoys(graph: &Graph, names: &HashMap<i32, String>) -> Vec<Convoy> {
    #[derive(Default)]
    struct On {
        wakers: BTreeSet<i32>,
        /// Woken by another thread of the program, how often.
        waiters: BTreeMap<i32, u64>,
    }
    let mut by_address: BTreeMap<u64, On> = BTreeMap::new();
    for (key, times) in &graph.edges {
        let Mechanism { wait: Wait::Futex, object: Object::Futex { address }, by: By::Call } = key.mechanism
        else {
            continue;
        };
        let Who::Task(waker) = key.waker else { continue };
        let on = by_address.entry(address).or_default();
        on.wakers.insert(waker);
        *on.waiters.entry(key.waiter).or_default() += times.wakes.len() as u64;
    }
    let convoy = |(address, On { wakers, waiters }): (u64, On)| {
        let both: Vec<(i32, u64)> = waiters.into_iter().filter(|(task, _)| wakers.contains(task)).collect();
        let (most, _) = both.iter().max_by_key(|(_, wakes)| *wakes)?;
        let waiter = names.get(most).cloned().unwrap_or_else(|| format!("task {most}"));
        let wakes: u64 = both.iter().map(|(_, wakes)| wakes).sum();
        (both.len() >= CONVOY && wakes >= FEW as u64).then_some(Convoy {
            address,
            waiter,
            threads: both.len() as u64,
            wakes,
        })
    };
    let mut all: Vec<Convoy> = by_address.into_iter().filter_map(convoy).collect();
    all.sort_by_key(|convoy| std::cmp::Reverse(convoy.wakes));
    all
}

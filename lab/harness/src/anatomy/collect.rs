// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gathers the wakes of one trial: the ways they took with a
//! distribution for each stage, and those that are kept whole.

use std::collections::BTreeMap;

use super::cut::{Cut, Stamps, between, cut};
use crate::trace::instance::Harvest;
use doorbell_results::anatomy::{Anatomy, Counts, Hidden, Mark, Meanwhile, Passed, Path, Rank, Wake};
use doorbell_results::event::{Event, What};
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::rank::rank;
use doorbell_results::record::{Histogram, Series};

/// Most events that are kept with a wake, under two hundred bytes each in the result file. The
/// median one has some twenty, one of 95 ms on two CPUs that twenty tasks fought over had 3,860:
/// the wakes that most need a cause are those with most events.
const MOST_EVENTS: usize = 10_000;

#[derive(Debug, Clone, Copy)]
pub struct Join {
    pub clock: Clock,
    pub tasks: [i32; 2],
}

#[derive(Debug, Default)]
struct Times {
    stages: BTreeMap<Mark, Histogram>,
    whole: Histogram,
}

impl Join {
    pub fn collect(&self, wakes: &[Stamps], harvest: &Harvest, hidden: Vec<Hidden>) -> Anatomy {
        let mut counts = Counts { lost_events: harvest.lost, ..Counts::default() };
        let mut paths: BTreeMap<(Vec<Mark>, bool), Times> = BTreeMap::new();
        let mut whole: Vec<(u64, &Stamps)> = Vec::new();
        for stamps in wakes {
            counts.stamped += 1;
            if stamps.sent < harvest.whole_from {
                counts.incomplete += 1;
                continue;
            }
            counts.cut += 1;
            let Cut { marks, across } = cut(stamps, self.tasks, &harvest.events);
            let key = (marks.iter().map(|mark| mark.0).collect(), across);
            let times = paths.entry(key).or_default();
            let zero = stamps.sent.cast_signed();
            // Differences of rounded times, not rounded differences: those would not add up.
            let at: Vec<(Mark, i64)> = marks.iter().map(|mark| (mark.0, self.ps(mark.1 - zero))).collect();
            for pair in at.windows(2) {
                let stage = times.stages.entry(pair[1].0).or_default();
                stage.record((pair[1].1 - pair[0].1).max(0).unsigned_abs());
            }
            let length = at.last().map_or(0, |mark| mark.1).max(0).unsigned_abs();
            times.whole.record(length);
            whole.push((length, stamps));
        }
        whole.sort_by_key(|(length, stamps)| (*length, stamps.sequence));
        let kept = ranks(whole.len())
            .into_iter()
            .filter_map(|(rank, index)| Some(self.keep(rank, whole.get(index)?.1, &harvest.events, None)))
            .collect();
        let mut paths: Vec<Path> = paths
            .into_iter()
            .map(|((marks, across), times)| Path {
                marks,
                across,
                stages: times.stages.iter().map(|(mark, times)| (*mark, Series::from(times))).collect(),
                whole: Series::from(&times.whole),
            })
            .collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.whole.count));
        Anatomy { hidden, counts, paths, kept, program: None }
    }

    /// One wake with what the kernel told of its time.
    pub fn keep(&self, rank: Rank, stamps: &Stamps, events: &[Event], meanwhile: Option<Meanwhile>) -> Wake {
        let Cut { marks, across } = cut(stamps, self.tasks, events);
        let zero = stamps.sent.cast_signed();
        let end = stamps.read.max(stamps.woke).cast_signed();
        let own = between(events, zero, end);
        let before = &events[..events.partition_point(|event| event.at < zero)];
        let mut told: Vec<Event> = context(before, &marks, self.tasks);
        let room = MOST_EVENTS.saturating_sub(told.len());
        told.extend(own.iter().take(room).cloned());
        for event in &mut told {
            event.at = self.ps(event.at - zero);
        }
        Wake {
            rank,
            sequence: stamps.sequence,
            tasks: self.tasks,
            marks: marks
                .into_iter()
                .map(|(mark, at, cpu)| Passed { mark, at_ps: self.ps(at - zero), cpu })
                .collect(),
            across,
            rescued: stamps.rescued,
            events: told,
            events_left_out: own.len().saturating_sub(room) as u64,
            meanwhile,
        }
    }

    /// A difference of ticks in picoseconds.
    fn ps(&self, ticks: i64) -> i64 {
        let ps = i64::try_from(self.clock.ps(ticks.unsigned_abs())).unwrap_or(i64::MAX);
        if ticks < 0 { -ps } else { ps }
    }
}

fn ranks(count: usize) -> Vec<(Rank, usize)> {
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let at = |q: f64| rank(q, count as u64) as usize - 1;
    vec![(Rank::Median, at(0.5)), (Rank::P99, at(0.99)), (Rank::Worst, last)]
}

/// What was so when the wake began: who ran on each CPU that it touches and in which state that
/// was, and how each side had left its CPU, or that it had come back to one since.
fn context(before: &[Event], marks: &[(Mark, i64, Option<u32>)], tasks: [i32; 2]) -> Vec<Event> {
    let mut cpus: Vec<u32> = marks.iter().filter_map(|mark| mark.2).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let last = |wanted: &dyn Fn(&Event) -> bool| before.iter().rposition(wanted);
    let mut found: Vec<usize> = Vec::new();
    for cpu in cpus {
        found.extend(last(&|event| event.cpu == cpu && matches!(event.what, What::Switch { .. })));
        found.extend(last(&|event| {
            event.cpu == cpu && matches!(event.what, What::Idles { .. } | What::Wakes)
        }));
    }
    for task in tasks {
        found.extend(last(
            &|event| matches!(event.what, What::Switch { from, to, .. } if from == task || to == task),
        ));
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter_map(|index| before.get(index).cloned()).collect()
}

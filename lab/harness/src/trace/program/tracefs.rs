// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's trace events: each system call, waking and switch of the program is one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::Weaver;
use super::seen::{Act, EVENTS, Reader, Seen};
use super::slowest::{Chosen, Telling};
use super::{Engine, Found, Known, RecordError};
use crate::trace::format::Place;
use crate::trace::{Instance, TraceError, Tracefs};
use doorbell_results::anatomy::Wake;
use doorbell_results::anatomy::program::Engine as Engines;
use doorbell_results::machine::clock::Source;
use doorbell_results::machine::cpu_list::CpuList;

/// Buffers of all CPUs together (of so many CPUs that each gets more than the least), and of each
/// at the most and at the least, KiB: 150,000 wake-ups a second of 400 bytes, all of one CPU, fill
/// 16 MiB in 0.28 s.
const ALL_KIB: u32 = 131_072;
const MOST_KIB: u32 = 16_384;
const LEAST_KIB: u32 = 1024;

/// Events that are kept: with them the recorder takes some 600 MB.
const MOST_EVENTS: usize = 12_000_000;

#[derive(Debug)]
pub(super) struct ByTracefs {
    pub(super) instance: Instance,
    reader: Reader,
    cpus: Vec<u32>,
    /// The events of each CPU, in order.
    seen: Vec<Vec<Seen>>,
    children: bool,
}

impl ByTracefs {
    pub(super) fn new(clock: Source, cpus: &CpuList, children: bool) -> Result<Self, RecordError> {
        let kib = ALL_KIB / u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1);
        let kib = kib.clamp(LEAST_KIB, MOST_KIB);
        let (instance, formats) = Instance::following(&Tracefs::reach()?, &EVENTS, clock, cpus, kib)?;
        let reader = Reader::new(&formats).ok_or(RecordError::Fields)?;
        let cpus: Vec<u32> = cpus.iter().collect();
        Ok(Self { instance, reader, seen: vec![Vec::new(); cpus.len()], cpus, children })
    }

    /// Follows nobody any more, and drops what was recorded and counted as lost until now.
    pub(super) fn forget(&mut self) -> Result<(), TraceError> {
        self.instance.unfollow()?;
        self.instance.drain(|_, _, _| {})?;
        self.instance.lost();
        Ok(())
    }

    fn records(&self) -> usize {
        self.seen.iter().map(Vec::len).sum()
    }
}

impl Engine for ByTracefs {
    fn follow(&mut self, _: i32, tasks: &[i32]) -> Result<(), RecordError> {
        Ok(self.instance.follow(tasks)?)
    }

    fn follow_children_of(&mut self, parent: i32) -> Result<(), RecordError> {
        Ok(self.instance.follow(&[parent])?)
    }

    fn turn(&mut self, on: bool) -> Result<(), RecordError> {
        Ok(self.instance.turn(on)?)
    }

    fn take(&mut self, known: &mut Known) -> Result<(), RecordError> {
        let Self { instance, reader, seen, children, .. } = self;
        Ok(instance.drain(|place, at, record| {
            let mut named = |task: i32, anew: bool, name: &Place| {
                // Most names are known, and no text need be made of them.
                if anew || !known.names.contains_key(&task) {
                    known.names.extend(name.text(record).map(|name| (task, name)));
                }
            };
            let Some(event) = reader.read(at, record, &mut named) else { return };
            if let Act::Born { task, thread: false } = event.act
                && *children
            {
                known.processes.insert(task);
            }
            if let Some(cpu) = seen.get_mut(place) {
                cpu.push(event);
            }
        })?)
    }

    fn limit_reached(&self) -> Option<String> {
        (self.records() >= MOST_EVENTS).then(|| format!("{MOST_EVENTS} events"))
    }

    fn found(&mut self, first: &[(i32, i32)], known: &mut Known, _: f64) -> Result<Found, RecordError> {
        let mut weaver = Weaver::new(first, self.children, &known.files);
        merged(&self.seen, |event| weaver.see(event));
        let (graph, lost) = (weaver.end(), self.instance.lost());
        Ok(Found { graph, events: self.records() as u64, lost, stacks_lost: 0, engine: Engines::Tracefs })
    }

    fn slowest_wakes(&self, chosen: &[Chosen], telling: Telling<'_>) -> Vec<(usize, Wake)> {
        let whole = |one: &Chosen| (one.edge, telling.told_by_events(one, &self.cpus, &self.seen));
        chosen.iter().map(whole).collect()
    }
}

/// Hands the events of all CPUs to `see` in the order of time.
fn merged(seen: &[Vec<Seen>], mut see: impl FnMut(&Seen)) {
    let mut next = vec![0; seen.len()];
    let first = |(cpu, events): (usize, &Vec<Seen>)| Some(Reverse((events.first()?.at, cpu)));
    let mut queue: BinaryHeap<_> = seen.iter().enumerate().filter_map(first).collect();
    while let Some(Reverse((_, cpu))) = queue.pop() {
        see(&seen[cpu][next[cpu]]);
        next[cpu] += 1;
        if let Some(event) = seen[cpu].get(next[cpu]) {
            queue.push(Reverse((event.at, cpu)));
        }
    }
}

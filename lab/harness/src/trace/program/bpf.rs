// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups that were put together in the kernel, one record each.
//!
//! Of system calls those are seen alone in which somebody sleeps or wakes. That a thread went on to
//! something else after a time-out is told by what it read, wrote, woke or slept in next; that one
//! asks in vain is not seen.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::call::{Call, Does};
use super::files::Files;
use super::graph::{Ended, Graph, Pending, Weaver, Woken as Waking};
use super::seen::Context;
use super::slowest::{Chosen, Telling};
use super::stacks::ByStacks;
use super::{Engine, Found, Known, RecordError, name, ns};
use crate::trace::bpf::record::{BY_TIMER, IN_INTERRUPT, IN_SOFTIRQ, RAN_OUT, Told, UNTOLD, Woken, read};
use crate::trace::bpf::{Bpf, BpfCounts, BpfError, Whom};
use doorbell_results::anatomy::Wake;
use doorbell_results::anatomy::program::Engine as Engines;

/// Wake-ups that are kept: with them and what is made of them the recorder takes some 900 MB.
const MOST: usize = 4_000_000;

/// Processes outside of the program whose descriptors are looked at when the ring is emptied, at
/// the most.
const LOOKS: usize = 16;

#[derive(Debug)]
pub(super) struct ByBpf {
    pub(super) bpf: Bpf,
    /// What had been counted when recording began, and of incomplete sleeps when it ended.
    before: BpfCounts,
    incomplete: u64,
    /// Wake-ups that were not in one slice from beginning to end.
    cut: u64,
    records: Records,
    /// Who names stacks, where they are recorded.
    stacks: Option<ByStacks>,
    /// Descriptors that were looked for, and wakers.
    sought: HashSet<(i32, i32)>,
    outside: HashSet<i32>,
}

#[derive(Debug, Default)]
struct Records {
    woken: Vec<Woken>,
    /// Threads that left their CPU without having gone to sleep, and when.
    left: Vec<(i32, u64)>,
    /// Of each thread its process and its CPU time at first and at last.
    threads: HashMap<i32, (i32, u64, u64)>,
    /// Processes that others of the program made.
    parents: Vec<(i32, i32)>,
    /// Of each thread the place of its last wake-up.
    last: HashMap<i32, usize>,
    /// The wake-ups after which their thread ended.
    ended: HashSet<usize>,
    /// Times without a gap, in order; none where there is one only.
    slices: Vec<Slice>,
}

/// A time without a gap.
#[derive(Debug, Clone, Copy)]
struct Slice {
    /// The place of its first wake-up.
    first: usize,
    since: u64,
    end: u64,
}

/// The call in which a waker has woken these.
#[derive(Debug)]
struct Calling {
    call: Call,
    switches: u64,
    woken: Vec<i32>,
}

impl ByBpf {
    pub(super) fn new(children: bool, stacks: Option<ByStacks>) -> Result<Self, BpfError> {
        Ok(Self {
            bpf: Bpf::load(children, stacks.as_ref().map(|stacks| stacks.one_in))?,
            before: BpfCounts::default(),
            incomplete: 0,
            cut: 0,
            records: Records::default(),
            stacks,
            sought: HashSet::new(),
            outside: HashSet::new(),
        })
    }

    pub(super) fn start(&mut self) -> Result<(), BpfError> {
        self.bpf.start()?;
        self.records.slices.push(Slice { first: self.records.woken.len(), since: now(), end: u64::MAX });
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Result<(), BpfError> {
        // Events stop one after the other, and wakings that are not seen any more are not missed.
        self.incomplete = self.bpf.counts()?.incomplete;
        if let Some(slice) = self.records.slices.last_mut() {
            slice.end = now();
        }
        self.bpf.stop();
        Ok(())
    }

    /// Forgets what was recorded so far, and says what it was.
    pub(super) fn forget(&mut self) -> Result<Vec<Woken>, BpfError> {
        let mut woken = Vec::new();
        self.bpf.drain(|bytes| {
            if let Some(Told::Woken(one)) = read(bytes) {
                woken.push(one);
            }
        });
        self.bpf.drain_stacks(|_| {});
        self.before = self.bpf.counts()?;
        self.records.slices.clear();
        Ok(woken)
    }
}

impl Engine for ByBpf {
    fn follow(&mut self, process: i32, tasks: &[i32]) -> Result<(), RecordError> {
        for task in tasks {
            let ran = cpu_time_of(process, *task).unwrap_or(0);
            self.records.threads.insert(*task, (process, ran, ran));
        }
        Ok(self.bpf.follow(&[Whom::Process(process)])?)
    }

    fn follow_children_of(&mut self, parent: i32) -> Result<(), RecordError> {
        Ok(self.bpf.follow(&[Whom::ChildrenOf(parent)])?)
    }

    fn turn(&mut self, on: bool) -> Result<(), RecordError> {
        let turned = if on { self.start() } else { self.stop() };
        Ok(turned?)
    }

    fn take(&mut self, known: &mut Known) -> Result<(), RecordError> {
        let Self { bpf, records, sought, outside, cut, stacks, .. } = self;
        let slice = records.slices.last().copied();
        let mut look = HashSet::new();
        bpf.drain(|bytes| {
            let Some(told) = read(bytes) else { return };
            if let Told::Woken(one) = &told
                && slice.is_some_and(|slice| one.slept < slice.since || one.waking > slice.end)
            {
                // Whatever it did between two slices, this was not one sleep.
                *cut += 1;
                return;
            }
            match &told {
                Told::Woken(one) => {
                    let ends = [(one.process, call_of(one)), (one.waker_process, waker_call_of(one))];
                    for (process, call) in ends {
                        let fd = call.and_then(|call| match call.does() {
                            Does::Closes(fd) => Some(fd),
                            _ => call.descriptor(),
                        });
                        if let Some(fd) = fd
                            && known.files.of(process, fd).is_none()
                            && sought.insert((process, fd))
                        {
                            look.insert(process);
                        }
                    }
                    // Who wakes from outside, or kept the thread waiting, may be gone in the end.
                    let waker = Some(one.waker).filter(|_| context(one) == Context::Task);
                    for task in waker.into_iter().chain(Some(one.before).filter(|task| *task > 0)) {
                        if !known.names.contains_key(&task) && outside.insert(task) {
                            known.names.extend(name(task).map(|name| (task, name)));
                        }
                    }
                }
                Told::Born { task, process, name, .. } => {
                    known.names.insert(*task, name.clone());
                    if task == process {
                        known.processes.insert(*process);
                    }
                }
                Told::Renamed { task, name } => {
                    known.names.insert(*task, name.clone());
                    if let Some(stacks) = stacks {
                        stacks.renamed(*task);
                    }
                }
                Told::Left { .. } | Told::Ended { .. } | Told::Stack(_) => {}
            }
            records.enter(told);
        });
        if let Some(stacks) = stacks {
            let mut met = Vec::new();
            bpf.drain_stacks(|bytes| met.extend(read(bytes)));
            for told in met {
                let Told::Stack(stack) = told else { continue };
                // One whose number says nothing is that of user mode alone.
                let kernel = stack.kernel.and_then(|number| bpf.kernel_stack(number).ok());
                stacks.enter(&stack, kernel.unwrap_or_default());
            }
        }
        for process in look.into_iter().take(LOOKS) {
            known.files.look(process);
        }
        Ok(())
    }

    fn limit_reached(&self) -> Option<String> {
        (self.records.woken.len() >= MOST).then(|| format!("{MOST} wake-ups"))
    }

    fn found(&mut self, first: &[(i32, i32)], known: &mut Known, share: f64) -> Result<Found, RecordError> {
        // How long the threads have run that are there still, and what they are called.
        for (task, (process, _, last)) in &mut self.records.threads {
            if let Some(ran) = cpu_time_of(*process, *task) {
                *last = ran.max(*last);
                known.names.extend(name(*task).map(|name| (*task, name)));
            }
        }
        let (now, before) = (self.bpf.counts()?, self.before);
        let incomplete = self.incomplete.saturating_sub(before.incomplete) + self.cut;
        Ok(Found {
            graph: self.records.graph(first, &known.files, incomplete, share),
            events: (self.records.woken.len() + self.records.left.len()) as u64,
            lost: now.lost.saturating_sub(before.lost),
            stacks_lost: now.stacks_lost.saturating_sub(before.stacks_lost),
            engine: Engines::Bpf,
        })
    }

    fn slowest_wakes(&self, chosen: &[Chosen], telling: Telling<'_>) -> Vec<(usize, Wake)> {
        self.records.slowest_wakes(chosen, telling)
    }

    fn recorded(&self) -> Option<u64> {
        let lengths = self.records.slices.iter().map(|slice| slice.end.saturating_sub(slice.since));
        Some(lengths.fold(0, u64::saturating_add))
    }

    fn stacks(&self) -> Option<&ByStacks> {
        self.stacks.as_ref()
    }
}

impl Records {
    fn enter(&mut self, told: Told) {
        let Self { woken, left, threads, parents, last, ended, .. } = self;
        match told {
            Told::Woken(one) => {
                if let Some((_, _, ran)) = threads.get_mut(&one.task) {
                    *ran = one.ran;
                }
                last.insert(one.task, woken.len());
                woken.push(one);
            }
            Told::Left { task, at } => left.push((task, at)),
            Told::Born { task, process, parent, .. } => {
                // A number that is given again: what its last holder ran is not lost.
                let ran = threads.get(&task).map_or(0, |(_, first, last)| last.saturating_sub(*first));
                threads.insert(task, (process, 0_u64.wrapping_sub(ran), 0));
                if task == process {
                    parents.push((process, parent));
                }
            }
            Told::Renamed { .. } | Told::Stack(_) => {}
            Told::Ended { task, ran } => {
                ended.extend(last.remove(&task));
                if let Some((_, _, last)) = threads.get_mut(&task) {
                    *last = ran;
                }
            }
        }
    }

    fn graph(&self, first: &[(i32, i32)], files: &Files, incomplete: u64, share: f64) -> Graph {
        let mut weaver = Weaver::new(first, true, files);
        for (task, (process, first, last)) in &self.threads {
            let ran = last.wrapping_sub(*first);
            // The kernel counts it between slices too.
            let ran = if share < 1.0 { (ran as f64 * share) as u64 } else { ran };
            weaver.ran(*task, *process, ran);
        }
        for (process, parent) in &self.parents {
            weaver.process_of(*process, *parent);
        }
        let untold = self.woken.iter().filter(|one| one.how & UNTOLD != 0).count();
        weaver.counted(self.woken.len() as u64, untold as u64, incomplete);
        self.weave(&mut weaver);
        weaver.end()
    }

    /// Enters the wake-ups in the order in which they began.
    fn weave(&self, weaver: &mut Weaver) {
        let leavings = self.leavings();
        let mut order: Vec<(usize, &Woken)> = self.woken.iter().enumerate().collect();
        order.sort_by_key(|(_, one)| one.waking);
        let mut before: HashMap<i32, (usize, &Woken)> = HashMap::new();
        let mut calling: HashMap<i32, Calling> = HashMap::new();
        let mut woke_last: HashMap<i32, u64> = HashMap::new();
        // Who woke another since, or ended, has gone on whatever it sleeps in next.
        let acted = |(place, last): (usize, &Woken), woke_last: &HashMap<i32, u64>| {
            let woke = woke_last.get(&last.task).is_some_and(|at| *at >= last.came);
            woke || self.ended.contains(&place)
        };
        for (place, one) in order {
            if let Some(last) = before.insert(one.task, (place, one)) {
                let acted = acted(last, &woke_last);
                let (slice, next) = (self.slice(last.0), self.slice(place));
                let went_on = acted || (slice == next && went_on(last.1, one));
                settle(weaver, last.1, went_on, &leavings, slice);
            }
            let Some(call) = waker_call_of(one).filter(|_| context(one) == Context::Task) else { continue };
            if !self.threads.contains_key(&one.waker) {
                continue;
            }
            woke_last.insert(one.waker, one.waking);
            let fresh = Calling { call, switches: one.waker_switches, woken: Vec::new() };
            let now = calling.entry(one.waker).or_insert(fresh);
            // Calls are not told apart by when they began: the same call wakes nobody twice, and
            // leaves its CPU seldom.
            let same = (now.call.number, now.call.args, now.switches)
                == (call.number, call.args, one.waker_switches)
                && !now.woken.contains(&one.task);
            if !same {
                let fresh = Calling { call, switches: one.waker_switches, woken: Vec::new() };
                told(weaver, one.waker, &std::mem::replace(now, fresh));
            }
            now.woken.push(one.task);
        }
        calling.iter().for_each(|(waker, calling)| told(weaver, *waker, calling));
        before.values().for_each(|last| {
            settle(weaver, last.1, acted(*last, &woke_last), &leavings, self.slice(last.0));
        });
    }

    /// The number of the slice in which the wake-up in a place was recorded, and its end.
    fn slice(&self, place: usize) -> (usize, u64) {
        let number = self.slices.partition_point(|slice| slice.first <= place);
        (number, number.checked_sub(1).map_or(u64::MAX, |number| self.slices[number].end))
    }

    fn slowest_wakes(&self, chosen: &[Chosen], telling: Telling<'_>) -> Vec<(usize, Wake)> {
        let key = |task, slept, told| (task, slept, told);
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, one) in chosen.iter().enumerate() {
            places.entry(key(one.waiter, one.slept, one.told)).or_default().push(place);
        }
        let mut found: Vec<(usize, Wake)> = Vec::new();
        for one in &self.woken {
            for place in places.get(&key(one.task, one.slept, one.waking)).into_iter().flatten() {
                found.push((*place, telling.put_together(&chosen[*place], one)));
            }
        }
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(place, wake)| (chosen[place].edge, wake)).collect()
    }

    fn leavings(&self) -> HashMap<i32, Vec<u64>> {
        let mut all: HashMap<i32, Vec<u64>> = HashMap::new();
        let slept = self.woken.iter().map(|one| (one.task, one.slept));
        for (task, at) in slept.chain(self.left.iter().copied()) {
            all.entry(task).or_default().push(at);
        }
        all.values_mut().for_each(|times| times.sort_unstable());
        all
    }
}

fn told(weaver: &mut Weaver, waker: i32, calling: &Calling) {
    if let Some(first) = calling.woken.first() {
        weaver.woke(waker, *first, calling.woken.len() as u64);
    }
}

fn call(number: i32, args: [u64; 3], at: u64) -> Option<Call> {
    (number >= 0).then(|| Call { number: number.into(), args, at })
}

fn call_of(one: &Woken) -> Option<Call> {
    call(one.call, one.args, one.slept)
}

fn waker_call_of(one: &Woken) -> Option<Call> {
    call(one.waker_call, one.waker_args, one.waking)
}

fn context(one: &Woken) -> Context {
    match one.how {
        how if how & IN_INTERRUPT != 0 => Context::Interrupt,
        how if how & IN_SOFTIRQ != 0 => Context::Softirq,
        _ => Context::Task,
    }
}

/// Whether a thread did something else than the same wait between two wake-ups.
fn went_on(last: &Woken, next: &Woken) -> bool {
    // A wait that reads or writes is itself among those that did.
    let own = call_of(last).is_some_and(|call| matches!(call.does(), Does::Reads(_) | Does::Writes(_)));
    let other = match (call_of(last), call_of(next)) {
        (Some(last), Some(next)) => !next.repeats(&last),
        (None, None) => false,
        _ => true,
    };
    other || next.done.saturating_sub(last.done) > u64::from(own)
}

fn settle(
    weaver: &mut Weaver,
    one: &Woken,
    went_on: bool,
    leavings: &HashMap<i32, Vec<u64>>,
    (slice, end): (usize, u64),
) {
    let left = leavings.get(&one.waker).and_then(|times| {
        let place = times.partition_point(|at| *at < one.waking);
        times.get(place).filter(|at| **at <= end)
    });
    let waking = Waking {
        // The waker was quicker than the leaving was told.
        at: one.waking.max(one.slept),
        who: one.waker,
        process: Some(one.waker_process),
        context: context(one),
        by_timer: one.how & BY_TIMER != 0,
        call: waker_call_of(one),
        early: one.waking < one.slept,
        told: one.waking,
        waker_ran: left.map(|at| at - one.waking),
    };
    let ended = if one.how & RAN_OUT != 0 { Ended::RanOut } else { Ended::Unseen };
    let pending = Pending {
        slept: one.slept,
        came: one.came.max(waking.at),
        woken: waking,
        call: call_of(one),
        ended,
        slice,
    };
    weaver.settled(one.task, &pending, None, went_on);
}

/// By the clock of the programs in the kernel.
pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    ns(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

/// How long a thread has run, as the kernel counts it.
fn cpu_time_of(process: i32, task: i32) -> Option<u64> {
    let text = doorbell_files::kernel(format!("/proc/{process}/task/{task}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait of task 10 whose time ran out.
    fn ran_out(at: u64, word: u64) -> Woken {
        Woken {
            how: IN_INTERRUPT | BY_TIMER | RAN_OUT,
            task: 10,
            process: 10,
            waker_call: -1,
            slept: at,
            waking: at + 1000,
            came: at + 2000,
            ..waits(FUTEX, word, 5)
        }
    }

    /// Such a wait, and what was told after it.
    fn rescued(after: Vec<Told>) -> u64 {
        let threads = HashMap::from([(10, (10, 0, 0)), (11, (10, 0, 0))]);
        let mut records = Records { threads, ..Records::default() };
        std::iter::once(Told::Woken(ran_out(1000, 0x70))).chain(after).for_each(|told| records.enter(told));
        let graph = records.graph(&[(10, 10), (11, 10)], &Files::default(), 0, 1.0);
        graph.edges.iter().map(|(_, times)| times.rescued).sum()
    }

    /// The last wait of each thread was never counted, and a lost
    /// wake-up before the end was missed.
    #[test]
    fn a_thread_that_ends_or_wakes_another_after_its_last_wait_ran_out_went_on() {
        assert_eq!(rescued(Vec::new()), 0, "what it does next is not seen");
        assert_eq!(rescued(vec![Told::Ended { task: 10, ran: 7 }]), 1);
        let woken =
            Woken { task: 11, waker: 10, waker_call: FUTEX, slept: 1, waking: 4000, ..Woken::default() };
        assert_eq!(rescued(vec![Told::Woken(woken)]), 1);
        let name = String::new();
        let again = Told::Born { task: 10, process: 10, parent: 1, name };
        assert_eq!(rescued(vec![Told::Ended { task: 10, ran: 7 }, again]), 1, "its number is another's now");
    }

    /// What it did between two slices is not known: that its next wait is another says nothing.
    #[test]
    fn a_thread_is_not_taken_to_have_gone_on_between_two_slices() {
        let rescued = |slices: Vec<Slice>| {
            let threads = HashMap::from([(10, (10, 0, 8000))]);
            let mut records = Records { threads, slices, ..Records::default() };
            records.enter(Told::Woken(ran_out(1000, 0x70)));
            records.enter(Told::Woken(ran_out(9000, 0x80)));
            let graph = records.graph(&[(10, 10)], &Files::default(), 0, 0.5);
            let rescued: u64 = graph.edges.iter().map(|(_, times)| times.rescued).sum();
            (rescued, graph.threads[&10].passed.iter().map(|one| one.slice).collect::<HashSet<_>>().len())
        };
        let slice = |first, end| Slice { first, since: 0, end };
        assert_eq!(rescued(vec![slice(0, 20_000)]), (1, 1));
        assert_eq!(rescued(vec![slice(0, 5000), slice(1, 20_000)]), (0, 2));
    }

    const FUTEX: i32 = libc::SYS_futex as i32;

    fn waits(call: i32, word: u64, done: u64) -> Woken {
        Woken { call, args: [word, 0, 0], done, ..Woken::default() }
    }

    #[test]
    fn a_thread_went_on_if_it_sleeps_in_another_call_or_read_or_wrote_meanwhile() {
        let last = waits(FUTEX, 0x70, 5);
        assert!(!went_on(&last, &waits(FUTEX, 0x70, 5)));
        assert!(went_on(&last, &waits(FUTEX, 0x80, 5)));
        assert!(went_on(&last, &waits(FUTEX, 0x70, 6)));
        let last = waits(libc::SYS_read as i32, 3, 5);
        assert!(!went_on(&last, &waits(libc::SYS_read as i32, 3, 6)), "the wait itself has read");
    }
}

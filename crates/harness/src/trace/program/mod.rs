// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records a program of the user's while it does its own work, and finds who wakes whom in it.
//!
//! ```text
//! buffers ─► seen (events, small) ─► graph (edges by task) ─► fold (edges by name) ─► Program, for the result
//! /proc ───► files (descriptors) ──────┘
//! ```
//!
//! The program is left alone: nothing is written to it, no signal sent, nobody attached to it. A recorder that is killed leaves its instance
//! of the kernel's buffers, which then fills and stops, and which the next run removes; the program goes on.

pub mod call;
pub mod files;
pub mod fold;
pub mod graph;
pub mod seen;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use self::files::Files;
use self::graph::{Weaver, Who};
use self::seen::{Act, EVENTS, Reader, Seen};
use super::format::Place;
use super::instance::Following;
use super::{Instance, TraceError, Tracefs};
use doorbell_results::anatomy::program::{Cost, LONGEST_NS, Program};
use doorbell_results::anatomy::{Anatomy, Counts};
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;

pub use self::fold::took;

/// Buffer of all CPUs together, and of each at the most and at the least, KiB: at 150,000 wake-ups a second of 400 bytes, a CPU's 16 MiB
/// last half a second.
const ALL_KIB: u32 = 131_072;
const MOST_KIB: u32 = 16_384;
const LEAST_KIB: u32 = 1024;

/// How often the buffers are emptied.
const EVERY: Duration = Duration::from_millis(20);

/// How long a recording lasts at the most: its end is within what a result file may hold.
const LONGEST: Duration = Duration::from_secs(100 * 24 * 60 * 60);
const _: () = assert!(LONGEST.as_nanos() < LONGEST_NS as u128);

/// Events that are kept: with them the recorder takes some 600 MB.
const MOST_EVENTS: usize = 12_000_000;

/// How long after the beginning the descriptors of its processes are looked at, each next time twice as long after that.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// But so often at least.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why a program could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel's events cannot be had.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The numbers of tasks here are not those of the events.
    #[error(
        "this command runs in a PID namespace of its own, as containers have, and trace events name tasks by the numbers of the host: \
         run it on the host, or in a container with --pid=host"
    )]
    Namespace,
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// An event lacks a field.
    #[error("this kernel's trace events lack a field that is needed; please report its version (uname -r)")]
    Fields,
}

/// A recorder that is set up, and records nothing yet.
#[derive(Debug)]
pub struct Recorder {
    instance: Instance,
    reader: Reader,
    clock: Clock,
    call_ns: f64,
    /// The events of each CPU, in order.
    seen: Vec<Vec<Seen>>,
    names: HashMap<i32, String>,
    /// The processes of the program that may still be there.
    processes: HashSet<i32>,
    files: Files,
}

/// How a recording went.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub anatomy: Anatomy,
    /// Whether the program ended by itself.
    pub ended: bool,
}

impl Recorder {
    /// Sets one up for `cpus`, and tries out what it costs a system call to be recorded.
    pub fn new(tracefs: &Tracefs, clock: Clock, cpus: &CpuList) -> Result<Self, RecordError> {
        if !in_first_namespace() {
            return Err(RecordError::Namespace);
        }
        let clock = if clock.source.stamps_events() { clock } else { Clock::MONOTONIC };
        let kib = ALL_KIB / u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1);
        let following =
            Following { events: &EVENTS, cpus, clock: clock.source, kib: kib.clamp(LEAST_KIB, MOST_KIB) };
        let (mut instance, formats) = Instance::following(tracefs, &following)?;
        let reader = Reader::new(&formats).ok_or(RecordError::Fields)?;
        let call_ns = price(&mut instance)?;
        Ok(Self {
            seen: vec![Vec::new(); cpus.len()],
            instance,
            reader,
            clock,
            call_ns,
            names: HashMap::new(),
            processes: HashSet::new(),
            files: Files::default(),
        })
    }

    /// Follows the threads of `processes` and what they start from then on.
    pub fn follow(&mut self, processes: &[i32]) -> Result<Vec<(i32, i32)>, RecordError> {
        let mut followed: Vec<(i32, i32)> = Vec::new();
        for process in processes {
            self.processes.insert(*process);
            // One that a thread makes while they are listed is followed only if the thread was: until none is new.
            loop {
                let threads = threads(*process).ok_or(RecordError::NoProcess(*process))?;
                let there = |task: &i32| !followed.iter().any(|(known, _)| known == task);
                let new: Vec<i32> = threads.into_iter().filter(there).collect();
                if new.is_empty() {
                    break;
                }
                self.instance.follow(&new)?;
                followed.extend(new.iter().map(|task| (*task, *process)));
            }
        }
        for (task, _) in &followed {
            if let Some(name) = name(*task) {
                self.names.insert(*task, name);
            }
        }
        self.look();
        Ok(followed)
    }

    /// Follows whatever the thread `parent` starts from then on. Its own doings are recorded too, and are not the program's.
    pub fn follow_children_of(&mut self, parent: i32) -> Result<(), RecordError> {
        Ok(self.instance.follow(&[parent])?)
    }

    pub fn start(&self) -> Result<(), RecordError> {
        Ok(self.instance.start()?)
    }

    /// Records until `time` is over, `ended` says that the program has ended, or `stop` that it is to end; then finds who woke whom. `first`
    /// are the threads with which the program begins; with `children` the processes that it makes belong to it.
    pub fn record(
        mut self,
        first: &[(i32, i32)],
        children: bool,
        time: Option<Duration>,
        mut ended: impl FnMut() -> bool,
        stop: impl Fn() -> bool,
    ) -> Result<Recorded, RecordError> {
        let (begun, spent) = (Instant::now(), cpu_time());
        self.processes.extend(first.iter().map(|(_, process)| *process));
        let (mut look_at, mut step) = (FIRST_LOOK, FIRST_LOOK);
        let mut cut_short = None;
        let ended = loop {
            std::thread::sleep(EVERY);
            let over = ended();
            self.take(children)?;
            if begun.elapsed() >= look_at {
                self.look();
                step = (step * 2).min(LOOK_EVERY);
                look_at = begun.elapsed() + step;
            }
            let events: usize = self.seen.iter().map(Vec::len).sum();
            if events >= MOST_EVENTS {
                cut_short = Some(format!("{MOST_EVENTS} events are as many as one recording keeps"));
            }
            if begun.elapsed() >= LONGEST {
                cut_short = Some("a recording lasts 100 days at the most".to_owned());
            }
            let timed = time.is_some_and(|time| begun.elapsed() >= time);
            if over || timed || stop() || cut_short.is_some() {
                break over;
            }
        };
        self.look();
        self.instance.stop()?;
        let recorded = begun.elapsed();
        self.take(children)?;
        let recorder_ns = ns(cpu_time().saturating_sub(spent));
        let lost = self.instance.lost();
        let events: usize = self.seen.iter().map(Vec::len).sum();
        let mut weaver = Weaver::new(first, children, &self.files);
        merged(&self.seen, |event| weaver.see(event));
        let graph = weaver.end();
        let calls = graph.calls;
        for (key, _) in &graph.edges {
            // Who woke from outside may be there still.
            if let Who::Task(task) = key.waker
                && !self.names.contains_key(&task)
            {
                self.names.extend(name(task).map(|name| (task, name)));
            }
        }
        let program = Program {
            recorded_ns: ns(recorded),
            cut_short,
            cost: Cost { recorder_ns, call_ns: self.call_ns, calls, events: events as u64 },
            ..fold::fold(graph, &self.names, self.clock)
        };
        let counts = Counts {
            stamped: program.wakes + program.incomplete,
            cut: program.wakes,
            incomplete: program.incomplete,
            lost_events: lost,
            ..Counts::default()
        };
        Ok(Recorded { anatomy: Anatomy { counts, program: Some(program), ..Anatomy::default() }, ended })
    }

    /// Takes out what lies in the buffers; with `children` the processes that are made belong to the program.
    fn take(&mut self, children: bool) -> Result<(), TraceError> {
        let Self { instance, reader, seen, names, processes, .. } = self;
        instance.drain(|place, at, record| {
            let mut named = |task: i32, anew: bool, name: &Place| {
                // Most names are known, and no text need be made of them.
                if anew || !names.contains_key(&task) {
                    names.extend(name.text(record).map(|name| (task, name)));
                }
            };
            let Some(event) = reader.read(at, record, &mut named) else { return };
            if let Act::Born { task, thread: false } = event.act
                && children
            {
                processes.insert(task);
            }
            if let Some(cpu) = seen.get_mut(place) {
                cpu.push(event);
            }
        })
    }

    fn look(&mut self) {
        let Self { files, processes, .. } = self;
        processes.retain(|process| files.look(*process));
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

/// By how much a system call of this thread takes longer while it is recorded, nanoseconds: the least of some differences.
fn price(instance: &mut Instance) -> Result<f64, TraceError> {
    const CALLS: u32 = 2000;
    const TURNS: u32 = 5;
    instance.follow(&[rustix::thread::gettid().as_raw_nonzero().get()])?;
    let mut times = [f64::INFINITY; 2];
    for _ in 0..TURNS {
        for (recorded, least) in times.iter_mut().enumerate() {
            if recorded == 1 {
                instance.start()?;
            }
            let begun = Instant::now();
            for _ in 0..CALLS {
                let _ = rustix::process::getppid();
            }
            *least = least.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
            instance.stop()?;
        }
    }
    instance.unfollow()?;
    instance.drain(|_, _, _| {})?;
    instance.lost();
    Ok((times[1] - times[0]).max(0.0))
}

/// Whether the numbers of processes are those by which the kernel itself knows them: `PROC_PID_INIT_INO` (kernel
/// include/linux/proc_ns.h) is the number of the first namespace.
fn in_first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

fn threads(process: i32) -> Option<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn name(task: i32) -> Option<String> {
    let text = doorbell_files::kernel(format!("/proc/{task}/comm")).ok()?;
    Some(text.trim_end().chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

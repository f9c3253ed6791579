// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records a program of the user's while it does its own work, and finds who wakes whom in it.
//!
//! ```text
//! tracefs: buffers ─► seen (events, small) ─► graph ─┐
//! bpf:     ring ─► record (wake-ups, whole) ─► graph (edges by task) ─► fold (edges by name) ─► Program, for the result
//! own:     buffers ─► steps (sleeps alone) ────┤
//! /proc ───► files (descriptors) ───────────────┘
//! ```
//!
//! The program is left alone: nothing is written to it, no signal sent, nobody attached to it. Of a
//! recorder that is killed programs in the kernel go with its descriptors; an instance of the
//! kernel's buffers is left, which then fills and stops, and which the next run removes.

mod bpf;
pub mod call;
pub mod files;
pub mod fold;
pub mod graph;
mod own;
mod price;
pub mod seen;
mod slices;
mod slowest;
pub mod stacks;
mod tracefs;

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::fs;
use std::num::NonZero;
use std::time::{Duration, Instant};

use rustix::process::{getpriority_process, setpriority_process};

use self::bpf::ByBpf;
use self::files::Files;
use self::fold::Fold;
use self::graph::{Graph, Who};
use self::own::ByOwn;
use self::price::{Pair, Price};
use self::slices::Slices;
use self::slowest::{Chosen, Telling};
use self::stacks::{ByStacks, Unwind};
use self::tracefs::ByTracefs;
use super::bpf::{BpfError, Whom};
use super::instance::sweep;
use super::{TraceError, Tracefs};
use doorbell_results::anatomy::program::{Cost, Engine as Engines, LONGEST_NS, Program};
use doorbell_results::anatomy::{Anatomy, Counts, Wake};
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;

pub use self::fold::took;

/// How often the buffers are emptied.
const EVERY: Duration = Duration::from_millis(20);

/// How long a recording lasts at the most: its end is within what a result file may hold.
const LONGEST: Duration = Duration::from_secs(100 * 24 * 60 * 60);
const _: () = assert!(LONGEST.as_nanos() < LONGEST_NS as u128);

/// How long after the beginning the descriptors of its processes are looked at, each next time
/// twice as long after that.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// But so often at least.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Programs of ours cannot run in the kernel, which alone were asked for.
    #[error("cannot record by BPF: {0}; --engine tracefs needs no BPF")]
    Bpf(#[from] BpfError),
    /// The same, where stacks were asked for.
    #[error("cannot record stacks, which BPF alone does: {0}")]
    Stacks(BpfError),
    /// Neither can be had, and nobody asked for less.
    #[error("{0}; or, of your own processes and without who wakes them: doorbell trace --engine own")]
    Neither(TraceError),
    /// Not even what any user may be told is told.
    #[error(
        "the kernel does not say when these threads sleep (perf_event_open: {cause}): it may for \
         processes of this user where kernel.perf_event_paranoid is 2 or less (it is {paranoid}), \
         and in a container whose seccomp profile allows the call"
    )]
    Own { cause: std::io::Error, paranoid: String },
    /// The numbers of tasks here are not those of the events.
    #[error(
        "this command runs in a PID namespace of its own, as containers have, and trace events \
         name tasks by the numbers of the host: run it on the host, or in a container with \
         --pid=host; or, without who wakes whom: doorbell trace --engine own"
    )]
    Namespace,
    #[error("there is no process {0}")]
    NoProcess(i32),
    #[error("this kernel's trace events lack a field that is needed; please report its version (uname -r)")]
    Fields,
    /// What recording costs could not be tried out.
    #[error("cannot try out what recording costs: {0}")]
    Price(std::io::Error),
    /// Trace events go on costing the program while they are not recorded.
    #[error("in slices records BPF alone, which costs the program nothing between them{0}")]
    Slices(String),
}

/// What is known of the program beside its wake-ups.
#[derive(Debug, Default)]
struct Known {
    names: HashMap<i32, String>,
    /// The processes of the program that may still be there.
    processes: HashSet<i32>,
    files: Files,
}

/// By what is recorded.
trait Engine: Debug {
    /// Follows threads of a process, all of the program's, and what they start from then on.
    fn follow(&mut self, process: i32, tasks: &[i32]) -> Result<(), RecordError>;
    fn follow_children_of(&mut self, parent: i32) -> Result<(), RecordError>;
    /// Begins to record, or stops.
    fn turn(&mut self, on: bool) -> Result<(), RecordError>;
    /// Takes out what lies in the buffers.
    fn take(&mut self, known: &mut Known) -> Result<(), RecordError>;
    /// What is as much as one recording keeps, once it has that.
    fn limit_reached(&self) -> Option<String>;
    /// Who woke whom in a program of the threads `first`, of which `share` of the time was recorded.
    fn found(&mut self, first: &[(i32, i32)], known: &mut Known, share: f64) -> Result<Found, RecordError>;
    /// The wake-ups that were chosen, with the places of their edges.
    fn slowest_wakes(&self, _chosen: &[Chosen], _telling: Telling<'_>) -> Vec<(usize, Wake)> {
        Vec::new()
    }
    /// How long it recorded, nanoseconds; of one that records in slices.
    fn recorded(&self) -> Option<u64> {
        None
    }
    fn stacks(&self) -> Option<&ByStacks> {
        None
    }
}

/// What an engine found, and how many records that was made of.
struct Found {
    graph: Graph,
    events: u64,
    lost: u64,
    stacks_lost: u64,
    engine: Engines,
}

impl RecordError {
    fn own(cause: std::io::Error) -> Self {
        let paranoid = doorbell_files::kernel("/proc/sys/kernel/perf_event_paranoid");
        let paranoid = paranoid.map_or("not said".to_owned(), |text| text.trim().to_owned());
        Self::Own { cause, paranoid }
    }
}

#[derive(Debug)]
pub struct Recorder {
    by: Box<dyn Engine>,
    /// Why it is not the cheapest engine.
    not_bpf: Option<String>,
    clock: Clock,
    price: Price,
    known: Known,
    /// When to record; none where that is always.
    slices: Option<Slices>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub anatomy: Anatomy,
    /// Whether the program ended by itself.
    pub ended: bool,
}

impl Recorder {
    /// Sets one up for `cpus`, and tries out what it costs a wake-up to be recorded: by `engine`,
    /// or where none is named by the cheapest that can be had. With `children` the processes that
    /// the program makes belong to it.
    pub fn new(
        engine: Option<Engines>,
        clock: Clock,
        cpus: &CpuList,
        children: bool,
    ) -> Result<Self, RecordError> {
        if engine == Some(Engines::Own) {
            return Self::by_own(cpus, children);
        }
        if !in_first_namespace() {
            return Err(RecordError::Namespace);
        }
        let pair = Pair::new().map_err(RecordError::Price)?;
        let by_bpf = match engine {
            Some(Engines::Tracefs) => None,
            _ => Some(Self::by_bpf(&pair, children, None)),
        };
        let not_bpf = match by_bpf {
            Some(Ok(recorder)) => {
                // What dead recorders by trace events left is not for ever.
                if let Ok(tracefs) = Tracefs::find() {
                    sweep(&tracefs);
                }
                return Ok(recorder);
            }
            Some(Err(error)) if engine == Some(Engines::Bpf) => return Err(error.into()),
            Some(Err(error)) => Some(error.to_string()),
            None => None,
        };
        let clock = if clock.source.stamps_events() { clock } else { Clock::MONOTONIC };
        let mut by = ByTracefs::new(clock.source, cpus, children).map_err(|error| match error {
            RecordError::Trace(error) if engine.is_none() => RecordError::Neither(error),
            other => other,
        })?;
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        by.instance.follow(&[&pair.tasks()[..], &[own]].concat())?;
        let instance = &by.instance;
        let price = price::price(&pair, |on| instance.turn(on))?;
        by.forget()?;
        Ok(Self { not_bpf, ..Self::of(by, clock, price) })
    }

    fn of(by: impl Engine + 'static, clock: Clock, price: Price) -> Self {
        Self { by: Box::new(by), not_bpf: None, clock, price, known: Known::default(), slices: None }
    }

    fn by_own(cpus: &CpuList, children: bool) -> Result<Self, RecordError> {
        let pair = Pair::new().map_err(RecordError::Price)?;
        let mut by = ByOwn::new(cpus, children)?;
        pair.tasks().into_iter().try_for_each(|task| by.follow_task(task))?;
        let price = price::price(&pair, |on| by.turn(on))?;
        by.forget()?;
        Ok(Self::of(by, Clock::MONOTONIC, Price { call_ns: 0.0, ..price }))
    }

    /// As [`Recorder::new`] by BPF, which also records the stacks of one in so many sleeps, and
    /// of who ended them.
    pub fn with_stacks(
        one_in: NonZero<u32>,
        unwind: Box<dyn Unwind>,
        children: bool,
    ) -> Result<Self, RecordError> {
        if !in_first_namespace() {
            return Err(RecordError::Namespace);
        }
        let pair = Pair::new().map_err(RecordError::Price)?;
        Self::by_bpf(&pair, children, Some(ByStacks::new(one_in, unwind))).map_err(RecordError::Stacks)
    }

    fn by_bpf(pair: &Pair, children: bool, stacks: Option<ByStacks>) -> Result<Self, BpfError> {
        let mut by = ByBpf::new(children, stacks)?;
        by.bpf.follow(&pair.tasks().map(Whom::Thread))?;
        let price = price::price(pair, |on| if on { by.start() } else { by.stop() })?;
        let woken = by.forget()?;
        let [one, other] = pair.tasks();
        // What is read at a wrong place would be believed.
        let right = |task, waker| {
            woken.iter().any(|woken| {
                let calls = (i64::from(woken.call), i64::from(woken.waker_call));
                (woken.task, woken.waker, woken.how) == (task, waker, 0)
                    && calls == (libc::SYS_read, libc::SYS_write)
            })
        };
        if !right(one, other) || !right(other, one) {
            return Err(BpfError::Wrong);
        }
        Ok(Self::of(by, Clock::MONOTONIC, Price { call_ns: 0.0, ..price }))
    }

    /// Records the share `share` of the time, in slices; `time` is
    /// how long all lasts, if that is known.
    pub fn in_slices(&mut self, share: f64, time: Option<Duration>) -> Result<(), RecordError> {
        if self.by.recorded().is_none() {
            let why = self.not_bpf.as_ref().map(|why| format!(": {why}"));
            return Err(RecordError::Slices(why.unwrap_or_default()));
        }
        self.slices = Some(Slices::new(share, time, fastrand::u64(..)));
        Ok(())
    }

    /// Why it records by trace events, where nobody asked for them.
    pub fn not_bpf(&self) -> Option<&str> {
        self.not_bpf.as_deref()
    }

    /// Follows the threads of `processes` and what they start from then on.
    pub fn follow(&mut self, processes: &[i32]) -> Result<Vec<(i32, i32)>, RecordError> {
        let mut followed: Vec<(i32, i32)> = Vec::new();
        for process in processes {
            self.known.processes.insert(*process);
            // One that a thread makes while they are listed is followed only if the thread was:
            // until none is new.
            loop {
                let threads = threads(*process).ok_or(RecordError::NoProcess(*process))?;
                let there = |task: &i32| !followed.iter().any(|(known, _)| known == task);
                let new: Vec<i32> = threads.into_iter().filter(there).collect();
                if new.is_empty() {
                    break;
                }
                self.by.follow(*process, &new)?;
                followed.extend(new.iter().map(|task| (*task, *process)));
            }
        }
        for (task, _) in &followed {
            if let Some(name) = name(*task) {
                self.known.names.insert(*task, name);
            }
        }
        self.known.look();
        Ok(followed)
    }

    /// Follows whatever the thread `parent` starts from then on. What itself does may be recorded
    /// too, and is not the program's.
    pub fn follow_children_of(&mut self, parent: i32) -> Result<(), RecordError> {
        self.by.follow_children_of(parent)
    }

    /// Begins; where it records in slices the first comes later.
    pub fn start(&mut self) -> Result<(), RecordError> {
        if self.slices.is_some() { Ok(()) } else { self.by.turn(true) }
    }

    /// Records until `time` is over, `ended` says that the program has ended, or `stop` that it is
    /// to end; then finds who woke whom. `first` are the threads with which the program begins.
    pub fn record(
        mut self,
        first: &[(i32, i32)],
        time: Option<Duration>,
        mut ended: impl FnMut() -> bool,
        stop: impl Fn() -> bool,
    ) -> Result<Recorded, RecordError> {
        let _ahead = Ahead::of_others();
        let (begun, spent) = (Instant::now(), cpu_time());
        self.known.processes.extend(first.iter().map(|(_, process)| *process));
        let (mut look_at, mut step) = (FIRST_LOOK, FIRST_LOOK);
        let mut on = self.slices.is_none();
        let (ended, cut_short) = loop {
            let next = self.slices.map(|slices| slices.at(begun.elapsed()));
            let until = next.map_or(EVERY, |(_, until)| until.saturating_sub(begun.elapsed()));
            std::thread::sleep(EVERY.min(until));
            if let Some(slices) = self.slices
                && slices.at(begun.elapsed()).0 != on
            {
                on = !on;
                self.by.turn(on)?;
            }
            let over = ended();
            // Before the next slice begins, all of this one is taken out.
            self.by.take(&mut self.known)?;
            if begun.elapsed() >= look_at {
                self.known.look();
                step = (step * 2).min(LOOK_EVERY);
                look_at = begun.elapsed() + step;
            }
            let full =
                self.by.limit_reached().map(|most| format!("{most} are as many as one recording keeps"));
            let longest =
                (begun.elapsed() >= LONGEST).then(|| "a recording lasts 100 days at the most".into());
            let cut_short = longest.or(full);
            let timed = time.is_some_and(|time| begun.elapsed() >= time);
            if over || timed || stop() || cut_short.is_some() {
                break (over, cut_short);
            }
        };
        self.known.look();
        if on {
            self.by.turn(false)?;
        }
        let lasted_ns = ns(begun.elapsed());
        self.by.take(&mut self.known)?;
        let recorded_ns = self.slices.and_then(|_| self.by.recorded());
        let recorded_ns = recorded_ns.map_or(lasted_ns, |recorded_ns| recorded_ns.min(lasted_ns));
        let recorder_ns = ns(cpu_time().saturating_sub(spent));
        let share = recorded_ns as f64 / lasted_ns.max(1) as f64;
        let Found { graph, events, lost, stacks_lost, engine } =
            self.by.found(first, &mut self.known, share)?;
        let calls = graph.calls;
        for (key, _) in &graph.edges {
            // Who woke from outside may be there still.
            if let Who::Task(task) = key.waker
                && !self.known.names.contains_key(&task)
            {
                self.known.names.extend(name(task).map(|name| (task, name)));
            }
        }
        let Price { wake_ns, call_ns } = self.price;
        let stacks = self.by.stacks();
        let sought = |task, slept| stacks.is_some_and(|stacks| stacks.has(task, slept));
        let Fold { program: mut folded, chosen, edges } =
            fold::fold(graph, &self.known.names, self.clock, sought);
        let edge = |task, slept| edges.get(&(task, slept)).copied();
        folded.stacks = stacks.map(|stacks| stacks.put(&mut folded.edges, edge, stacks_lost));
        let mut program = Program {
            engine,
            recorded_ns,
            lasted_ns: self.slices.map(|_| lasted_ns),
            cut_short,
            cost: Cost { recorder_ns, call_ns, wake_ns, calls, events },
            ..folded
        };
        let telling = Telling { clock: self.clock, names: &self.known.names };
        for (edge, wake) in self.by.slowest_wakes(&chosen, telling) {
            program.edges[edge].slowest.push(wake);
        }
        let counts = Counts {
            stamped: program.wakes + program.incomplete,
            cut: program.wakes,
            incomplete: program.incomplete,
            lost_events: lost,
            ..Counts::default()
        };
        Ok(Recorded { anatomy: Anatomy { counts, program: Some(program), ..Anatomy::default() }, ended })
    }
}

impl Known {
    fn look(&mut self) {
        let Self { files, processes, .. } = self;
        processes.retain(|process| files.look(*process));
    }
}

/// Whether the numbers of processes are those by which the kernel itself knows them:
/// `PROC_PID_INIT_INO` (kernel include/linux/proc_ns.h) is the number of the first namespace.
fn in_first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

/// `process` and those that it made, and those that they made, as far as they are there.
pub fn processes_of(process: i32) -> Vec<i32> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(process) = all.get(next).copied() {
        next += 1;
        for task in threads(process).unwrap_or_default() {
            let path = format!("/proc/{process}/task/{task}/children");
            let text = doorbell_files::kernel(path).unwrap_or_default();
            all.extend(text.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
        }
    }
    all
}

/// This thread runs before others for as long as this is there: a program that takes all CPUs would
/// leave it none to empty the buffers. Without the right to that it is one of many.
struct Ahead {
    before: i32,
}

impl Ahead {
    fn of_others() -> Option<Self> {
        let this = rustix::thread::gettid();
        let before = getpriority_process(Some(this)).ok()?;
        setpriority_process(Some(this), -20).ok()?;
        Some(Self { before })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // It had that before.
        let _ = setpriority_process(Some(rustix::thread::gettid()), self.before);
    }
}

fn threads(process: i32) -> Option<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn name(task: i32) -> Option<String> {
    let text = doorbell_files::kernel(format!("/proc/{task}/comm")).ok()?;
    Some(text.trim_end().replace(char::is_control, "?"))
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

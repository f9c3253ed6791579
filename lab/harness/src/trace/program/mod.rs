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
use self::slowest::Telling;
use self::stacks::{ByStacks, Unwind};
use self::tracefs::ByTracefs;
use super::bpf::{BpfError, Whom};
use super::instance::sweep;
use super::{TraceError, Tracefs};
use doorbell_results::anatomy::program::{Cost, Engine, LONGEST_NS, Program};
use doorbell_results::anatomy::{Anatomy, Counts};
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
#[derive(Debug)]
enum By {
    Bpf(Box<ByBpf>),
    Tracefs(Box<ByTracefs>),
    Own(Box<ByOwn>),
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
    by: By,
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
        engine: Option<Engine>,
        clock: Clock,
        cpus: &CpuList,
        children: bool,
    ) -> Result<Self, RecordError> {
        if engine == Some(Engine::Own) {
            return Self::by_own(cpus, children);
        }
        if !in_first_namespace() {
            return Err(RecordError::Namespace);
        }
        let pair = Pair::new().map_err(RecordError::Price)?;
        let by_bpf = match engine {
            Some(Engine::Tracefs) => None,
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
            Some(Err(error)) if engine == Some(Engine::Bpf) => return Err(error.into()),
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
        let price = price::price(&pair, |on| if on { instance.start() } else { instance.stop() })?;
        by.forget()?;
        Ok(Self {
            by: By::Tracefs(Box::new(by)),
            not_bpf,
            clock,
            price,
            known: Known::default(),
            slices: None,
        })
    }

    fn by_own(cpus: &CpuList, children: bool) -> Result<Self, RecordError> {
        let pair = Pair::new().map_err(RecordError::Price)?;
        let mut by = ByOwn::new(cpus, children)?;
        pair.tasks().into_iter().try_for_each(|task| by.follow(task))?;
        let price = price::price(&pair, |on| by.turn(on))?;
        by.forget();
        Ok(Self {
            by: By::Own(Box::new(by)),
            not_bpf: None,
            clock: Clock::MONOTONIC,
            price: Price { call_ns: 0.0, ..price },
            known: Known::default(),
            slices: None,
        })
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
        by.follow(&pair.tasks().map(Whom::Thread))?;
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
        let price = Price { call_ns: 0.0, ..price };
        Ok(Self {
            by: By::Bpf(Box::new(by)),
            not_bpf: None,
            clock: Clock::MONOTONIC,
            price,
            known: Known::default(),
            slices: None,
        })
    }

    /// Records the share `share` of the time, in slices; `time` is
    /// how long all lasts, if that is known.
    pub fn in_slices(&mut self, share: f64, time: Option<Duration>) -> Result<(), RecordError> {
        if !matches!(self.by, By::Bpf(_)) {
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
            if let By::Bpf(bpf) = &mut self.by {
                bpf.follow(&[Whom::Process(*process)])?;
            }
            // One that a thread makes while they are listed is followed only if the thread was:
            // until none is new.
            loop {
                let threads = threads(*process).ok_or(RecordError::NoProcess(*process))?;
                let there = |task: &i32| !followed.iter().any(|(known, _)| known == task);
                let new: Vec<i32> = threads.into_iter().filter(there).collect();
                if new.is_empty() {
                    break;
                }
                match &mut self.by {
                    By::Tracefs(tracefs) => tracefs.instance.follow(&new)?,
                    By::Bpf(bpf) => new.iter().for_each(|task| bpf.there(*task, *process)),
                    By::Own(own) => new.iter().try_for_each(|task| {
                        own.there(*task, *process);
                        own.follow(*task)
                    })?,
                }
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
        match &mut self.by {
            By::Tracefs(tracefs) => tracefs.instance.follow(&[parent])?,
            By::Bpf(bpf) => bpf.follow(&[Whom::ChildrenOf(parent)])?,
            By::Own(own) => own.follow(parent)?,
        }
        Ok(())
    }

    /// Begins; where it records in slices the first comes later.
    pub fn start(&mut self) -> Result<(), RecordError> {
        if self.slices.is_some() { Ok(()) } else { self.turn(true) }
    }

    fn turn(&mut self, on: bool) -> Result<(), RecordError> {
        match &mut self.by {
            By::Tracefs(tracefs) if on => tracefs.instance.start()?,
            By::Tracefs(tracefs) => tracefs.instance.stop()?,
            By::Bpf(bpf) if on => bpf.start()?,
            By::Bpf(bpf) => bpf.stop()?,
            By::Own(own) => own.turn(on)?,
        }
        Ok(())
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
        let mut cut_short = None;
        let mut on = self.slices.is_none();
        let ended = loop {
            let next = self.slices.map(|slices| slices.at(begun.elapsed()));
            let until = next.map_or(EVERY, |(_, until)| until.saturating_sub(begun.elapsed()));
            std::thread::sleep(EVERY.min(until));
            if let Some(slices) = self.slices
                && slices.at(begun.elapsed()).0 != on
            {
                on = !on;
                self.turn(on)?;
            }
            let over = ended();
            // Before the next slice begins, all of this one is taken out.
            self.take()?;
            if begun.elapsed() >= look_at {
                self.known.look();
                step = (step * 2).min(LOOK_EVERY);
                look_at = begun.elapsed() + step;
            }
            cut_short = match &self.by {
                By::Tracefs(tracefs) if tracefs.is_full() => Some(ByTracefs::most()),
                By::Bpf(bpf) if bpf.is_full() => Some(ByBpf::most()),
                By::Own(own) if own.is_full() => Some(ByOwn::most()),
                _ => cut_short,
            };
            if begun.elapsed() >= LONGEST {
                cut_short = Some("a recording lasts 100 days at the most".to_owned());
            }
            let timed = time.is_some_and(|time| begun.elapsed() >= time);
            if over || timed || stop() || cut_short.is_some() {
                break over;
            }
        };
        self.known.look();
        if on {
            self.turn(false)?;
        }
        let lasted_ns = ns(begun.elapsed());
        self.take()?;
        let recorded_ns = match (&self.by, self.slices) {
            (By::Bpf(bpf), Some(_)) => bpf.recorded().min(lasted_ns),
            _ => lasted_ns,
        };
        let recorder_ns = ns(cpu_time().saturating_sub(spent));
        let share = recorded_ns as f64 / lasted_ns.max(1) as f64;
        let (graph, events, lost, engine) = self.graph(first, share)?;
        let stacks_lost = match &self.by {
            By::Bpf(by) => by.stacks_lost()?,
            By::Tracefs(_) | By::Own(_) => 0,
        };
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
        let stacks = match &self.by {
            By::Bpf(by) => by.stacks.as_ref(),
            By::Tracefs(_) | By::Own(_) => None,
        };
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
        let whole = match &self.by {
            By::Bpf(by) => by.whole(&chosen, telling),
            By::Tracefs(by) => by.whole(&chosen, telling),
            By::Own(_) => Vec::new(),
        };
        for (edge, wake) in whole {
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

    /// Who woke whom, how many records that was made of, how many were lost, and by what; `share`
    /// of the time was recorded.
    fn graph(&mut self, first: &[(i32, i32)], share: f64) -> Result<(Graph, u64, u64, Engine), RecordError> {
        let files = &self.known.files;
        Ok(match &mut self.by {
            By::Tracefs(by) => (by.graph(first, files), by.records(), by.instance.lost(), Engine::Tracefs),
            By::Bpf(by) => {
                by.look(&mut self.known.names);
                (by.graph(first, files, share), by.records(), by.lost()?, Engine::Bpf)
            }
            By::Own(by) => (by.graph(first, files), by.records(), by.lost(), Engine::Own),
        })
    }

    fn take(&mut self) -> Result<(), RecordError> {
        match &mut self.by {
            By::Tracefs(tracefs) => tracefs.take(&mut self.known)?,
            By::Bpf(bpf) => bpf.take(&mut self.known),
            By::Own(own) => own.take(&mut self.known),
        }
        Ok(())
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
    Some(text.trim_end().chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

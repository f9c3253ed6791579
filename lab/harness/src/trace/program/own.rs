// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel tells any user of processes of their own: when a thread leaves its CPU and comes
//! back to one (`PERF_RECORD_SWITCH` of perf_event_open(2)), and in `/proc` how long it was ready
//! to run before it came, and in which call it sleeps just now.
//!
//! By whom a thread is woken, and when, the kernel tells nobody who has no rights for it.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use super::bpf::now;
use super::call::Call;
use super::files::Files;
use super::graph::{Ended, Graph, Pending, Ready, Weaver, Woken};
use super::seen::Context;
use super::{Engine, Found, Known, RecordError};
use doorbell_results::anatomy::program::Engine as Engines;
use doorbell_results::machine::cpu_list::CpuList;

/// Buffer of a CPU: with its first page as much as every user may have locked
/// (`kernel.perf_event_mlock_kb`), at 24 bytes a switch. Where another recorder has some of it
/// already, less will do, down to the second.
const BUFFER: usize = 512 << 10;
const LEAST: usize = 16 << 10;

/// Switches that are kept: with them and what is made of them the recorder takes some 600 MB.
const MOST: usize = 8_000_000;
/// Of one CPU at once: who switches as fast as we read would keep us for ever.
const AT_ONCE: usize = 1 << 18;
/// Threads that are looked at when the buffers are emptied, some microseconds each.
const LOOKS: usize = 16;

/// Kinds of records, and of a switch whether it is one from the CPU, and whether the thread would
/// have gone on (include/uapi/linux/perf_event.h).
const LOST: u32 = 2;
const NAMED: u32 = 3;
const ENDED: u32 = 4;
const BORN: u32 = 7;
const SWITCH: u32 = 14;
const LEAVES: u16 = 1 << 13;
const WOULD_GO_ON: u16 = 1 << 14;

/// `PERF_EVENT_IOC_SET_OUTPUT`, of the same file.
const SET_OUTPUT: libc::c_ulong = 0x2405;

pub(super) struct ByOwn {
    cpus: Vec<usize>,
    /// A buffer for each CPU, which is that of an event that never counts.
    buffers: Vec<Sampler>,
    /// For each thread that was followed one event a CPU, which what it makes inherits.
    events: Vec<Counter>,
    children: bool,
    records: Records,
    /// Where the next look begins.
    next_look: usize,
}

#[derive(Debug, Default)]
struct Records {
    lives: HashMap<i32, Life>,
    /// Processes that others made.
    parents: Vec<(i32, i32)>,
    kept: usize,
    lost: u64,
    since: u64,
    until: u64,
}

#[derive(Debug, Default)]
struct Life {
    process: i32,
    steps: Vec<(u64, Step)>,
    looks: Vec<Look>,
    /// What the kernel counted of it, at first and at last.
    counted: Option<[Counted; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Born,
    Comes,
    Sleeps,
    /// Another has its CPU, and it would go on.
    Waits,
    Ends,
}

/// A thread was in this call, asleep, from one time to the other.
#[derive(Debug, Clone, Copy)]
struct Look {
    from: u64,
    to: u64,
    call: Call,
}

/// How long a thread had run by then, and how long it had been ready to and waited for a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    at: u64,
    ran: u64,
    waited: u64,
}

impl std::fmt::Debug for ByOwn {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ByOwn").field("cpus", &self.cpus).finish_non_exhaustive()
    }
}

impl ByOwn {
    pub(super) fn new(cpus: &CpuList, children: bool) -> Result<Self, RecordError> {
        let (mut there, mut buffers) = (Vec::new(), Vec::new());
        for cpu in cpus.iter().map(|cpu| cpu as usize) {
            match buffer(cpu) {
                Ok(buffer) => {
                    there.push(cpu);
                    buffers.push(buffer);
                }
                // It went off line since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(RecordError::own(error)),
            }
        }
        let records = Records::default();
        Ok(Self { cpus: there, buffers, events: Vec::new(), children, records, next_look: 0 })
    }

    /// Follows a thread and whatever it makes.
    pub(super) fn follow_task(&mut self, task: i32) -> Result<(), RecordError> {
        for (cpu, buffer) in self.cpus.iter().zip(&self.buffers) {
            let mut event = Builder::new(Software::DUMMY);
            event
                .observe_pid(task)
                .one_cpu(*cpu)
                .inherit(true)
                .context_switch(true)
                .task(true)
                .comm(true)
                .sample(SampleFlag::TID | SampleFlag::TIME)
                .sample_id_all(true)
                .clockid(Clock::MONOTONIC);
            let event = match event.build() {
                // A program is not started where many are followed, so none inherits this.
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) && raise_files() => event.build(),
                other => other,
            };
            let event = match event {
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                other => other.map_err(RecordError::own)?,
            };
            let to = buffer.as_counter().as_raw_fd();
            // SAFETY: both are open events, and the number takes a descriptor.
            // JUSTIFICATION: the library has no call for it.
            if unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, to) } < 0 {
                return Err(RecordError::own(io::Error::last_os_error()));
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Forgets what was recorded so far, and whom it followed.
    pub(super) fn forget(&mut self) -> Result<(), RecordError> {
        self.events.clear();
        self.take(&mut Known::default())?;
        self.records = Records::default();
        Ok(())
    }

    /// Looks at so many threads that live, those first whose turn it is.
    fn look(&mut self, most: usize) {
        let Self { records, next_look, .. } = self;
        let lives = |life: &Life| life.steps.last().is_none_or(|(_, step)| *step != Step::Ends);
        let mut all: Vec<_> = records.lives.iter_mut().filter(|(_, life)| lives(life)).collect();
        let count = all.len();
        if *next_look >= count {
            *next_look = 0;
        }
        all.rotate_left(*next_look);
        *next_look += most;
        all.into_iter().take(most).for_each(|(task, life)| life.look(*task));
    }
}

impl Engine for ByOwn {
    fn follow(&mut self, process: i32, tasks: &[i32]) -> Result<(), RecordError> {
        tasks.iter().try_for_each(|task| {
            let counted = counted(process, *task).map(|first| [first; 2]);
            self.records.lives.insert(*task, Life { process, counted, ..Life::default() });
            self.follow_task(*task)
        })
    }

    fn follow_children_of(&mut self, parent: i32) -> Result<(), RecordError> {
        self.follow_task(parent)
    }

    fn turn(&mut self, on: bool) -> Result<(), RecordError> {
        let turn = |event: &mut Counter| if on { event.enable() } else { event.disable() };
        self.events.iter_mut().try_for_each(turn).map_err(RecordError::own)?;
        *if on { &mut self.records.since } else { &mut self.records.until } = now();
        Ok(())
    }

    /// And looks at some threads.
    fn take(&mut self, known: &mut Known) -> Result<(), RecordError> {
        let Self { buffers, records, children, .. } = self;
        for buffer in buffers {
            let next = || buffer.next_record().map(|one| records.enter(&one, *children, known));
            std::iter::repeat_with(next).take(AT_ONCE).take_while(Option::is_some).for_each(drop);
        }
        self.look(LOOKS);
        Ok(())
    }

    fn limit_reached(&self) -> Option<String> {
        (self.records.kept >= MOST).then(|| format!("{MOST} switches"))
    }

    fn found(&mut self, first: &[(i32, i32)], known: &mut Known, _: f64) -> Result<Found, RecordError> {
        let graph = self.records.graph(first, self.children, &known.files);
        let (events, lost) = (self.records.kept as u64, self.records.lost);
        Ok(Found { graph, events, lost, stacks_lost: 0, engine: Engines::Own })
    }
}

/// An event that counts nothing, with a buffer to which others of its CPU write.
fn buffer(cpu: usize) -> io::Result<Sampler> {
    let mut size = BUFFER;
    loop {
        let mut event = Builder::new(Software::DUMMY);
        let event = event.observe_self().one_cpu(cpu).clockid(Clock::MONOTONIC).build()?;
        match event.sampled(size) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && size > LEAST => size /= 2,
            other => return other,
        }
    }
}

/// Lets this process have as many descriptors as it may; whether that is more than it had.
fn raise_files() -> bool {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    limit.current != limit.maximum && setrlimit(Resource::Nofile, most).is_ok()
}

impl Records {
    fn enter(&mut self, record: &perf_event::Record<'_>, children: bool, known: &mut Known) {
        let bytes = record.to_contiguous();
        let word = |place: usize| Some(u64::from_ne_bytes(bytes.get(place..place + 8)?.try_into().ok()?));
        let task = |place: usize| Some(i32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?));
        // At the end of each: process, thread and time.
        let Some(end) = bytes.len().checked_sub(16) else { return };
        let Some(at) = word(end + 8) else { return };
        match record.ty() {
            LOST => self.lost = self.lost.saturating_add(word(8).unwrap_or(0)),
            NAMED => {
                let name = bytes.get(8..end).unwrap_or(&[]).split(|byte| *byte == 0).next();
                let name = String::from_utf8_lossy(name.unwrap_or(&[]));
                known.names.extend(task(4).map(|task| (task, name.replace(char::is_control, "?"))));
            }
            kind @ (BORN | ENDED) => {
                let (Some(process), Some(parent)) = (task(0), task(4)) else { return };
                let (Some(task), Some(maker)) = (task(8), task(12)) else { return };
                if kind == ENDED {
                    return self.step(task, process, at, Step::Ends);
                }
                if let Some(name) = known.names.get(&maker).cloned() {
                    known.names.entry(task).or_insert(name);
                }
                if process != parent {
                    self.parents.push((process, parent));
                    if children {
                        known.processes.insert(process);
                    }
                }
                self.step(task, process, at, Step::Born);
                if let Some(life) = self.lives.get_mut(&task) {
                    life.counted = Some([Counted { at, ..Counted::default() }; 2]);
                }
            }
            SWITCH => {
                let (Some(process), Some(task)) = (task(0), task(4)) else { return };
                let step = match (record.misc() & LEAVES != 0, record.misc() & WOULD_GO_ON != 0) {
                    (false, _) => Step::Comes,
                    (true, false) => Step::Sleeps,
                    (true, true) => Step::Waits,
                };
                self.step(task, process, at, step);
            }
            _ => {}
        }
    }

    fn step(&mut self, task: i32, process: i32, at: u64, step: Step) {
        // Of one that has just ended no number is left.
        if task <= 0 || process <= 0 {
            return;
        }
        self.kept += 1;
        let life = self.lives.entry(task).or_default();
        life.process = process;
        life.steps.push((at, step));
    }

    fn graph(&mut self, first: &[(i32, i32)], children: bool, files: &Files) -> Graph {
        let own = std::process::id().cast_signed();
        let is_ours = |process: i32| match children {
            true => process != own,
            false => first.iter().any(|(_, ours)| *ours == process),
        };
        let mut weaver = Weaver::new(first, children, files);
        for (process, parent) in &self.parents {
            weaver.process_of(*process, *parent);
        }
        let mut ready = Vec::new();
        for (task, life) in &mut self.lives {
            if !is_ours(life.process) {
                continue;
            }
            // What a CPU told later may have been before.
            life.steps.sort_by_key(|(at, _)| *at);
            let lived = life.lived(self.since, self.until);
            weaver.ran(*task, life.process, lived.ran);
            weaver.counted(lived.slept.len() as u64, 0, lived.incomplete);
            for [slept, came] in &lived.slept {
                weaver.settled(*task, &life.sleep(*slept, *came), None, false);
            }
            ready.push((*task, lived.ready));
        }
        let mut graph = weaver.end();
        for (task, ready) in ready {
            if let Some(thread) = graph.threads.get_mut(&task) {
                thread.ready = ready;
            }
        }
        graph
    }
}

#[derive(Debug, Default, PartialEq)]
struct Lived {
    ran: u64,
    /// From leaving its CPU to coming to one.
    slept: Vec<[u64; 2]>,
    incomplete: u64,
    ready: Option<Ready>,
}

impl Life {
    fn look(&mut self, task: i32) {
        let process = self.process;
        if let Some(last) = counted(process, task) {
            self.counted = Some([self.counted.map_or(last, |[first, _]| first), last]);
        }
        let from = now();
        let text = doorbell_files::kernel(format!("/proc/{process}/task/{task}/syscall"));
        let to = now();
        if let Some(call) = text.ok().and_then(|text| sleeps_in(&text, from)) {
            self.looks.push(Look { from, to, call });
        }
    }

    fn lived(&self, since: u64, until: u64) -> Lived {
        let mut lived = Lived::default();
        // Since when it sleeps, is kept from running, or runs.
        let (mut slept, mut kept, mut on) = (None, None, None);
        let [first, last] = self.counted.unwrap_or_default();
        let (mut wakes, mut kept_for) = (0, 0);
        let asked = |at: u64| first.at <= at && at <= last.at;
        for (place, (at, step)) in self.steps.iter().enumerate() {
            match step {
                Step::Born => (slept, kept, on) = (None, None, None),
                Step::Comes => {
                    match (slept.take(), kept.take()) {
                        (Some(begun), _) => {
                            lived.slept.push([begun, *at]);
                            wakes += u64::from(asked(*at));
                        }
                        (None, Some(begun)) if asked(*at) => kept_for += at.saturating_sub(begun),
                        (None, Some(_)) => {}
                        (None, None) => lived.incomplete += u64::from(place == 0),
                    }
                    on = Some(*at);
                }
                Step::Sleeps | Step::Waits | Step::Ends => {
                    let begun = if place == 0 { Some(since) } else { on };
                    lived.ran += begun.map_or(0, |begun| at.saturating_sub(begun));
                    on = None;
                    match step {
                        Step::Sleeps => slept = slept.or(Some(*at)),
                        Step::Waits => kept = Some(*at),
                        _ => (slept, kept) = (None, None),
                    }
                }
            }
        }
        lived.ran += match (on, self.steps.is_empty()) {
            (Some(on), _) => until.saturating_sub(on),
            (None, true) => last.ran.saturating_sub(first.ran),
            (None, false) => 0,
        };
        // The kernel counts both waits alike: that for the CPU it came to, and that for its own.
        let waited = last.waited.saturating_sub(first.waited).saturating_sub(kept_for);
        lived.ready = self.counted.filter(|_| wakes > 0).map(|_| Ready { waited, wakes });
        lived
    }

    fn sleep(&self, slept: u64, came: u64) -> Pending {
        let place = self.looks.partition_point(|look| look.from < slept);
        let look = self.looks.get(place).filter(|look| look.to <= came);
        let woken = Woken { at: came, context: Context::Unseen, told: came, ..Woken::default() };
        let call = look.map(|look| look.call);
        Pending { slept, woken, came, call, ended: Ended::Unseen, slice: 0 }
    }
}

/// `202 0x7f… 0x80 …`: the number and the words of the call in which a thread sleeps; none of one
/// that runs.
fn sleeps_in(text: &str, at: u64) -> Option<Call> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some(Call { number, args: [word()?, word()?, word()?], at })
}

/// What the kernel counted of a thread (kernel Documentation/scheduler/sched-stats.rst).
fn counted(process: i32, task: i32) -> Option<Counted> {
    let text = doorbell_files::kernel(format!("/proc/{process}/task/{task}/schedstat")).ok()?;
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some(Counted { at: now(), ran: words.next()??, waited: words.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(steps: &[(u64, Step)]) -> Life {
        Life { process: 10, steps: steps.to_vec(), ..Life::default() }
    }

    #[test]
    fn a_sleep_is_told_from_a_wait_for_the_cpu_and_one_begun_before_is_left_out() {
        use Step::{Comes, Ends, Sleeps, Waits};
        let steps = [
            (5, Comes),
            (10, Sleeps),
            (30, Comes),
            (40, Waits),
            (47, Comes),
            (50, Sleeps),
            (90, Comes),
            (95, Ends),
        ];
        let mut one = life(&steps);
        one.counted = Some([Counted::default(), Counted { at: 99, ran: 0, waited: 17 }]);
        let lived = one.lived(0, 100);
        assert_eq!(lived.slept, [[10, 30], [50, 90]]);
        assert_eq!((lived.ran, lived.incomplete), (5 + 10 + 3 + 5, 1));
        assert_eq!(lived.ready, Some(Ready { waited: 10, wakes: 2 }), "less what it was kept waiting for");
    }

    #[test]
    fn a_number_that_is_given_again_is_another_thread_and_one_that_never_left_ran_all_the_time() {
        use Step::{Born, Comes, Sleeps};
        let lived = life(&[(0, Comes), (5, Sleeps), (50, Born), (60, Comes)]).lived(0, 100);
        assert_eq!((lived.slept, lived.ran), (Vec::new(), 45));
        let mut never = life(&[]);
        never.counted = Some([Counted::default(), Counted { at: 100, ran: 100, waited: 0 }]);
        assert_eq!(never.lived(0, 100), Lived { ran: 100, ..Lived::default() });
    }

    #[test]
    fn what_it_slept_in_is_known_of_a_sleep_that_lasted_through_a_look() {
        let mut one = life(&[]);
        let call = sleeps_in("202 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffc 0x7f12", 12).unwrap();
        assert_eq!((call.number, call.args), (202, [0x7f00, 0x80, 2]));
        one.looks.push(Look { from: 12, to: 14, call });
        assert_eq!(one.sleep(10, 20).call, Some(call));
        assert_eq!(one.sleep(10, 13).call, None, "it woke while it was looked at");
        assert_eq!(one.sleep(13, 20).call, None);
        assert_eq!(sleeps_in("running", 0), None);
        assert_eq!(sleeps_in("-1 0x7ffc 0x7f12", 0), None, "it waits for a page");
    }
}

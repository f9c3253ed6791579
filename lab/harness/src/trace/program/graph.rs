// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a wake graph of events, or of wake-ups that were put together in the kernel
//! (`bpf`): which thread was woken by whom, out of which wait, how long it had slept and
//! how long it took to run.
//!
//! A wake-up begins when the kernel begins to wake a thread that has left its CPU, and ends when a
//! CPU turns to it. Some virtual machines leave the latter out where the CPU was idle; such a
//! wake-up ends at the first thing that the thread is seen to do, and is counted apart. By what it
//! was woken is settled at the next system call that the thread makes: a wait for several files
//! shows then of which one it was, and a time-out that it was one.

use std::collections::{HashMap, HashSet, VecDeque};

use super::call::{CUT_OFF, Call, Does, Opened, ran_out, socket};
use super::files::Files;
use super::seen::{Act, Context, Seen};
use doorbell_results::anatomy::program::{By, File, Mechanism, Object, Wait};

/// Wake-ups of a waker between its coming and its leaving that are remembered until it leaves.
const WOKEN_AT_ONCE: usize = 64;

/// Threads that one call must wake to be a herd's.
const HERD: u64 = 3;

/// Who woke: a task, or the kernel in an interrupt, or nobody saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    Task(i32),
    Kernel,
    Unseen,
}

/// One way in which one thread was woken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub waker: Who,
    pub waiter: i32,
    pub mechanism: Mechanism,
}

/// What is known of an edge; times in ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// Slept, took.
    pub wakes: Vec<[u64; 2]>,
    pub ran_out: u64,
    pub rescued: u64,
}

/// A wake-up in a thread's life, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Place in [`Graph::edges`].
    pub edge: usize,
    pub slept: u64,
    pub waking: u64,
    pub came: u64,
    /// When its waking was told.
    pub told: u64,
    /// How long the waker stayed on its CPU after that.
    pub waker_ran: Option<u64>,
    /// The number of the time without a gap in which it was recorded.
    pub slice: usize,
}

/// What a thread did while it was recorded.
#[derive(Debug, Clone, Default)]
pub struct Lived {
    pub ran: u64,
    pub passed: Vec<Passed>,
    /// Calls that asked whether there was something to do and came back with nothing at once, as
    /// the call before them had.
    pub asked_in_vain: u64,
    /// What the kernel counted, where it was asked.
    pub ready: Option<Ready>,
}

/// For how long a thread was ready to run before it ran, over so many wake-ups, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    pub waited: u64,
    pub wakes: u64,
}

/// What was found; tasks by their numbers.
#[derive(Debug, Default)]
pub struct Graph {
    pub edges: Vec<(Key, Times)>,
    pub threads: HashMap<i32, Lived>,
    pub wakes: u64,
    pub ended_by_action: u64,
    pub incomplete: u64,
    /// Calls of the program.
    pub calls: u64,
    /// Herds by waker and the first that was woken: calls and threads woken.
    pub herds: HashMap<(i32, i32), (u64, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Woken {
    pub(super) at: u64,
    pub(super) who: i32,
    /// The process of who woke, where that is known.
    pub(super) process: Option<i32>,
    pub(super) context: Context,
    /// Whether the kernel was seen to serve a timer that had run out.
    pub(super) by_timer: bool,
    /// The call that the waker was in.
    pub(super) call: Option<Call>,
    /// Whether it came before the kernel had told that the thread left its CPU.
    pub(super) early: bool,
    pub(super) told: u64,
    pub(super) waker_ran: Option<u64>,
}

/// A wake-up that is over, and of which it is not settled yet by what it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) slept: u64,
    pub(super) woken: Woken,
    pub(super) came: u64,
    pub(super) call: Option<Call>,
    pub(super) ended: Ended,
    pub(super) slice: usize,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nobody looked.
    Unseen,
    RanOut,
    Returned(i64),
}

#[derive(Debug, Default)]
struct Thread {
    process: i32,
    call: Option<Call>,
    /// Whether it was seen to enter a call or to leave one: what it was in before is not known.
    known: bool,
    slept: Option<u64>,
    woken: Option<Woken>,
    pending: Option<Pending>,
    on_since: Option<u64>,
    lived: Lived,
    /// Whether its last call was such a one.
    last_in_vain: bool,
    /// Whether it left its CPU since it entered the call that it is in.
    left_in_call: bool,
    /// The call by which it woke others last, the first of them, and how many.
    woke: Option<(u64, i32, u64)>,
    /// Whom it woke since it came to its CPU, and when.
    woken_by_it: VecDeque<(i32, u64)>,
    /// The call that a stop or a signal cut off.
    cut_off: Option<Call>,
}

/// Reads events in the order of time.
#[derive(Debug)]
pub struct Weaver<'a> {
    files: &'a Files,
    children: bool,
    threads: HashMap<i32, Thread>,
    /// What system calls opened: process and descriptor.
    opened: HashMap<(i32, i32), File>,
    /// The processes that made those of the program.
    parents: HashMap<i32, i32>,
    places: HashMap<Key, usize>,
    graph: Graph,
}

impl<'a> Weaver<'a> {
    /// For a program of the threads `first`, each with its process; with `children`, also the
    /// processes that it makes.
    pub fn new(first: &[(i32, i32)], children: bool, files: &'a Files) -> Self {
        let thread = |&(task, process): &(i32, i32)| (task, Thread { process, ..Thread::default() });
        Self {
            files,
            children,
            threads: first.iter().map(thread).collect(),
            opened: HashMap::new(),
            parents: HashMap::new(),
            places: HashMap::new(),
            graph: Graph::default(),
        }
    }

    pub fn see(&mut self, event: &Seen) {
        match event.act {
            Act::Enters { call, args } => self.enters(event, Call { number: call, args, at: event.at }),
            Act::Returns { value, .. } => self.returns(event, value),
            Act::Waking { task } => self.waking(event, task),
            Act::Switch { from, state, to, .. } => {
                self.leaves(from, event.at, state != 0);
                self.comes(to, event.at);
            }
            Act::Born { task, thread } => self.born(event.task, task, thread),
        }
    }

    /// That a process of the program made this one, whose open files it began with.
    pub(super) fn process_of(&mut self, process: i32, parent: i32) {
        self.parents.insert(process, parent);
    }

    /// That a thread is the program's, and ran for so long.
    pub(super) fn ran(&mut self, task: i32, process: i32, ran: u64) {
        let thread = self.threads.entry(task).or_default();
        (thread.process, thread.lived.ran) = (process, ran);
    }

    /// That one call of a waker woke so many, `first` before the others.
    pub(super) fn woke(&mut self, waker: i32, first: i32, count: u64) {
        herd(&mut self.graph, waker, first, count);
    }

    /// What was counted outside.
    pub(super) fn counted(&mut self, wakes: u64, ended_by_action: u64, incomplete: u64) {
        self.graph.wakes += wakes;
        self.graph.ended_by_action += ended_by_action;
        self.graph.incomplete += incomplete;
    }

    pub fn end(mut self) -> Graph {
        let tasks: Vec<i32> = self.threads.keys().copied().collect();
        for task in tasks {
            self.settle(task, None);
            if let Some(thread) = self.threads.get_mut(&task)
                && let Some((_, first, count)) = thread.woke.take()
            {
                herd(&mut self.graph, task, first, count);
            }
        }
        self.graph.threads = self.threads.into_iter().map(|(task, thread)| (task, thread.lived)).collect();
        self.graph
    }

    fn born(&mut self, parent: i32, task: i32, thread: bool) {
        let Some(process) = self.threads.get(&parent).map(|parent| parent.process) else { return };
        if !thread && !self.children {
            return;
        }
        // A number that is given again: what was found of its last holder stays.
        self.settle(task, None);
        let lived = self.threads.remove(&task).unwrap_or_default().lived;
        let process = if thread {
            process
        } else {
            self.parents.insert(task, process);
            task
        };
        // Its whole life is recorded.
        self.threads.insert(task, Thread { process, known: true, lived, ..Thread::default() });
    }

    fn enters(&mut self, event: &Seen, call: Call) {
        self.acts(event.task, event.at);
        let cut_off = self.threads.get_mut(&event.task).and_then(|thread| thread.cut_off.take());
        let call = match (call.does(), cut_off) {
            (Does::Restarts, Some(cut_off)) => Call { at: call.at, ..cut_off },
            _ => call,
        };
        self.settle(event.task, Some(call));
        if let Some(thread) = self.threads.get_mut(&event.task) {
            thread.call = Some(call);
            thread.known = true;
            thread.left_in_call = false;
            self.graph.calls += 1;
        }
    }

    fn returns(&mut self, event: &Seen, value: i64) {
        self.acts(event.task, event.at);
        let Some(thread) = self.threads.get_mut(&event.task) else { return };
        thread.known = true;
        let call = thread.call.take();
        // Its very next call goes on with it, or none does.
        thread.cut_off = call.filter(|_| value == CUT_OFF);
        if let Some(pending) = &mut thread.pending
            && pending.ended == Ended::Unseen
        {
            let wait = pending.call.map_or(Wait::Elsewhere, |call| call.wait());
            pending.ended = if ran_out(wait, value) { Ended::RanOut } else { Ended::Returned(value) };
        }
        // Whoever drains a file is told once that there is no more, and does not ask again.
        let in_vain = !thread.left_in_call && call.is_some_and(|call| call.asks(value));
        thread.lived.asked_in_vain += u64::from(in_vain && thread.last_in_vain);
        thread.last_in_vain = in_vain;
        let process = thread.process;
        match (call.map(|call| call.does()), i32::try_from(value)) {
            (Some(Does::Closes(fd)), _) => drop(self.opened.remove(&(process, fd))),
            (Some(Does::Executes), Ok(0)) => self.opened.retain(|(of, _), _| *of != process),
            (Some(Does::Opens(opened)), Ok(fd @ 0..)) => {
                let file = match opened {
                    Opened::Eventfd => Some(File::Eventfd),
                    Opened::Epoll => Some(File::Epoll),
                    Opened::Timerfd => Some(File::Timerfd),
                    Opened::Signalfd => Some(File::Signalfd),
                    Opened::Socket(family, kind) => Some(socket(family, kind)),
                    Opened::Accepted(other) | Opened::Copy(other) => self.file(process, other),
                    // A FIFO, perhaps: whoever looks will see.
                    Opened::Other => None,
                };
                // Of the rest whoever looks knows more.
                match file.filter(|file| *file != File::Other) {
                    Some(file) => drop(self.opened.insert((process, fd), file)),
                    None => drop(self.opened.remove(&(process, fd))),
                }
            }
            _ => {}
        }
    }

    /// What a thread does that it can do on a CPU alone: if it was being woken it has come.
    fn acts(&mut self, task: i32, at: u64) {
        let Some(thread) = self.threads.get_mut(&task) else { return };
        if let Some((slept, woken)) = thread.slept.zip(thread.woken) {
            self.came(task, slept, woken, at);
            self.graph.ended_by_action += 1;
        } else {
            // A waking that met it before it slept kept it awake.
            thread.woken = None;
            if thread.slept.take().is_some() {
                self.graph.incomplete += 1;
            }
            thread.on_since.get_or_insert(at);
        }
    }

    fn waking(&mut self, event: &Seen, task: i32) {
        let waker = self.threads.get(&event.task);
        let (process, call) = (waker.map(|waker| waker.process), waker.and_then(|waker| waker.call));
        let Some(thread) = self.threads.get_mut(&task) else { return };
        if thread.woken.is_some_and(|woken| !woken.early) {
            return;
        }
        let early = thread.slept.is_none();
        thread.woken = Some(Woken {
            at: event.at,
            who: event.task,
            process,
            context: event.context,
            call,
            early,
            told: event.at,
            ..Woken::default()
        });
        if let Some(waker) = self.threads.get_mut(&event.task) {
            if waker.woken_by_it.len() == WOKEN_AT_ONCE {
                waker.woken_by_it.pop_front();
            }
            waker.woken_by_it.push_back((task, event.at));
        }
        if event.context == Context::Task
            && let Some(call) = call
            && let Some(waker) = self.threads.get_mut(&event.task)
        {
            match &mut waker.woke {
                Some((at, _, count)) if *at == call.at => *count += 1,
                woke => {
                    if let Some((_, first, count)) = woke.replace((call.at, task, 1)) {
                        herd(&mut self.graph, event.task, first, count);
                    }
                }
            }
        }
    }

    fn leaves(&mut self, task: i32, at: u64, sleeps: bool) {
        if !self.threads.contains_key(&task) {
            return;
        }
        // It can leave only what it has come to.
        if self.threads.get(&task).is_some_and(|thread| thread.slept.is_some()) {
            self.acts(task, at);
        }
        if sleeps {
            // Woken once more within one call.
            self.settle(task, None);
        }
        self.waker_leaves(task, at);
        let Some(thread) = self.threads.get_mut(&task) else { return };
        if let Some(since) = thread.on_since.take() {
            thread.lived.ran += at.saturating_sub(since);
        }
        if sleeps {
            thread.left_in_call = true;
            thread.slept = Some(at);
            // The waker was quicker than the event: the kernel tells of a leaving when it is all
            // but over.
            if let Some(woken) = &mut thread.woken {
                woken.at = woken.at.max(at);
            }
        } else {
            thread.woken = None;
        }
    }

    /// Notes with each wake-up that `task` began since it came to its CPU how long it stayed there.
    fn waker_leaves(&mut self, task: i32, at: u64) {
        let Some(waker) = self.threads.get_mut(&task) else { return };
        for (waiter, told) in std::mem::take(&mut waker.woken_by_it) {
            let ran = Some(at.saturating_sub(told));
            let Some(waiter) = self.threads.get_mut(&waiter) else { continue };
            let pending = waiter.pending.as_mut().map(|pending| &mut pending.woken);
            if let Some(woken) = pending.into_iter().chain(&mut waiter.woken).find(|woken| woken.told == told)
            {
                woken.waker_ran = ran;
                continue;
            }
            let passed = waiter.lived.passed.iter_mut().rev().take(WOKEN_AT_ONCE);
            if let Some(passed) = passed.into_iter().find(|passed| passed.told == told) {
                passed.waker_ran = ran;
            }
        }
    }

    fn comes(&mut self, task: i32, at: u64) {
        let Some(thread) = self.threads.get_mut(&task) else { return };
        match thread.slept.zip(thread.woken) {
            Some((slept, woken)) => self.came(task, slept, woken, at),
            None => {
                thread.woken = None;
                thread.on_since = Some(at);
                if thread.slept.take().is_some() {
                    self.graph.incomplete += 1;
                }
            }
        }
    }

    fn came(&mut self, task: i32, slept: u64, woken: Woken, at: u64) {
        let Some(thread) = self.threads.get_mut(&task) else { return };
        thread.slept = None;
        thread.woken = None;
        thread.on_since = Some(at);
        if !thread.known {
            self.graph.incomplete += 1;
            return;
        }
        self.graph.wakes += 1;
        thread.pending =
            Some(Pending { slept, woken, came: at, call: thread.call, ended: Ended::Unseen, slice: 0 });
    }

    /// Settles by what `task` was woken, now that it makes its next call, or sleeps again, or all
    /// is over.
    fn settle(&mut self, task: i32, next: Option<Call>) {
        let Some(pending) = self.threads.get_mut(&task).and_then(|thread| thread.pending.take()) else {
            return;
        };
        let other = |call: Call| pending.call.is_some_and(|before| !call.repeats(&before));
        self.settled(task, &pending, next, next.is_some_and(other));
    }

    /// Enters a wake-up of `task`, after which it made the call `next`, if that was seen, and went
    /// on to something else than the same wait or not.
    pub(super) fn settled(&mut self, task: i32, pending: &Pending, next: Option<Call>, went_on: bool) {
        let (waker, mechanism) = self.cause(task, pending, next);
        let key = Key { waker, waiter: task, mechanism };
        let ended = pending.ended == Ended::RanOut && waker == Who::Kernel;
        let edge = match self.places.get(&key) {
            Some(place) => *place,
            None => {
                self.places.insert(key.clone(), self.graph.edges.len());
                self.graph.edges.push((key, Times::default()));
                self.graph.edges.len() - 1
            }
        };
        let Pending { slept, woken, came, slice, .. } = *pending;
        let times = &mut self.graph.edges[edge].1;
        times.wakes.push([woken.at.saturating_sub(slept), came.saturating_sub(woken.at)]);
        times.ran_out += u64::from(ended);
        times.rescued += u64::from(ended && went_on);
        if let Some(thread) = self.threads.get_mut(&task) {
            let Woken { at: waking, told, waker_ran, .. } = woken;
            thread.lived.passed.push(Passed { edge, slept, waking, came, told, waker_ran, slice });
        }
    }

    fn cause(&self, task: i32, pending: &Pending, next: Option<Call>) -> (Who, Mechanism) {
        let Pending { woken, call, ended, .. } = *pending;
        let process = self.threads.get(&task).map_or(0, |thread| thread.process);
        let wait = call.map_or(Wait::Elsewhere, |call| call.wait());
        let ready = matches!(ended, Ended::Unseen | Ended::Returned(1..));
        let own = self.waited_for(process, wait, call, next.filter(|_| ready));
        let made = |by, object| Mechanism { wait, object, by };
        if woken.context == Context::Unseen {
            let wait = if call.is_some() { wait } else { Wait::Unseen };
            return (Who::Unseen, Mechanism { wait, ..made(By::Unseen, own) });
        }
        let from_irq = woken.context != Context::Task || woken.who == 0;
        if from_irq {
            if wait == Wait::Sleep || ended == Ended::RanOut {
                return (Who::Kernel, made(By::Timer, own));
            }
            if let Some(object) = self.sent_here(&woken, &own) {
                return (Who::Task(woken.who), made(By::Call, object));
            }
            let for_many = matches!(wait, Wait::Epoll | Wait::Poll | Wait::Select | Wait::Connection);
            let by = match &own {
                Object::File { file: File::Timerfd, .. } => By::Timer,
                _ if woken.by_timer => By::Timer,
                Object::File { file: File::Socket { .. }, .. } => By::Network,
                _ if wait == Wait::Signal => By::Timer,
                // Softirqs also end what disks do.
                _ if woken.context == Context::Softirq && for_many => By::Network,
                _ => By::Interrupt,
            };
            return (Who::Kernel, made(by, own));
        }
        let does = woken.call.map(|call| call.does());
        let by = match does {
            Some(Does::Signals(number)) => By::Signal { number },
            Some(Does::Ends) => By::End,
            _ => match ended {
                // Who sent it is outside of what is recorded, and the wait tells which it was.
                Ended::Returned(number @ 1..) if wait == Wait::Signal => By::Signal { number },
                _ => By::Call,
            },
        };
        let object = match (by, wait) {
            (By::Call, Wait::Epoll | Wait::Poll | Wait::Select | Wait::IoUring) => self.written(&woken, own),
            _ => own,
        };
        (Who::Task(woken.who), made(by, object))
    }

    /// What a thread waits for, as its own calls show it.
    fn waited_for(&self, process: i32, wait: Wait, call: Option<Call>, next: Option<Call>) -> Object {
        let file = |call: Option<Call>| {
            let fd = call.and_then(|call| call.descriptor());
            fd.map_or(Object::None, |fd| object(self.file(process, fd).unwrap_or(File::Other), fd))
        };
        match wait {
            Wait::Futex => call.map_or(Object::None, |call| Object::Futex { address: call.args[0] }),
            Wait::Read | Wait::Write | Wait::Connection => file(call),
            // What it reads or writes first is what was ready.
            Wait::Epoll | Wait::Poll | Wait::Select => file(next),
            _ => Object::None,
        }
    }

    /// What the waker wrote to, where the waiter waits for several files; `own` where that shows as
    /// much.
    fn written(&self, woken: &Woken, own: Object) -> Object {
        let process = woken.process;
        let fd = woken.call.and_then(|call| call.descriptor());
        let Some((process, fd)) = process.zip(fd) else { return own };
        match (self.file(process, fd), &own) {
            // Two ends of one thing: it goes by the number that the waiter has for it.
            (Some(file), Object::File { file: read, .. }) if same_kind(&file, read) => own,
            (Some(file @ (File::Eventfd | File::Pipe | File::Socket { .. })), _) => object(file, fd),
            _ => own,
        }
    }

    /// The socket by which the program's own thread woke the waiter, though the kernel did so in a
    /// softirq: what is sent to this machine is received in the sender's call.
    fn sent_here(&self, woken: &Woken, own: &Object) -> Option<Object> {
        let call = woken.call.filter(|_| woken.context == Context::Softirq)?;
        let fd = match call.does() {
            Does::Writes(fd) | Does::Connects(fd) | Does::Closes(fd) => fd,
            _ => return None,
        };
        let file = self.file(woken.process?, fd)?;
        let File::Socket { family, address } = &file else { return None };
        let is_local = |address: &String| {
            let at = address.parse().map(|address: std::net::SocketAddr| address.ip());
            at.is_ok_and(|ip| ip.is_loopback())
        };
        let inet = family == "tcp" || family == "udp";
        if !inet || !address.as_ref().is_none_or(is_local) {
            return None;
        }
        Some(match own {
            Object::File { file: File::Socket { .. }, .. } => own.clone(),
            _ => object(file, fd),
        })
    }

    /// What a descriptor is of: as the program was seen to open it, else as it was seen to be open,
    /// be it where the process came from.
    fn file(&self, process: i32, fd: i32) -> Option<File> {
        let (mut process, mut seen) = (process, HashSet::new());
        loop {
            let looked = self.files.of(process, fd);
            match (self.opened.get(&(process, fd)), looked) {
                // The same, with its address.
                (Some(opened), Some(looked)) if same_kind(opened, looked) => return Some(looked.clone()),
                (Some(opened), _) => return Some(opened.clone()),
                (None, Some(looked)) => return Some(looked.clone()),
                (None, None) => {}
            }
            if !seen.insert(process) {
                return None;
            }
            process = *self.parents.get(&process)?;
        }
    }
}

fn herd(graph: &mut Graph, waker: i32, first: i32, count: u64) {
    if count >= HERD {
        let (calls, woken) = graph.herds.entry((waker, first)).or_default();
        *calls += 1;
        *woken += count;
    }
}

fn same_kind(one: &File, other: &File) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// An open file as what is waited for: one with an address goes by that.
fn object(file: File, fd: i32) -> Object {
    let named = matches!(&file, File::Socket { address: Some(_), .. });
    Object::File { file, fd: Some(fd).filter(|_| !named) }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;

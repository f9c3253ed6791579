// SPDX-License-Identifier: MIT OR Apache-2.0
//! A few threads, a few words of shared memory, futexes and eventfds: the machine under the models
//! `futex`, `eventfd` and `bell`.
//!
//! A program is a list of instructions with words for a reader; a mistake is another list. Each
//! instruction that touches shared memory is one atomic step. What a thread does with its registers
//! alone belongs to the step before.
//!
//! **Memory order.** A load may be performed before the store or read-modify-write just ahead of it
//! in the program ([`Action::Early`]), unless a fence stands between or both touch the same word.
//! This store→load reordering is the one that x86 allows for plain stores, and that C11 and Arm
//! allow for a read-modify-write too. It is the only reordering that a full fence is needed against
//! in these protocols; acquire and release order is taken for granted. A system call takes locks in
//! the kernel and is never passed.

use super::{Property, Protocol, Step};
use std::hash::Hash;

/// What the command and the checker ask of the models on this machine: their configurations and
/// the name of one. Each has a function `model` and hazards of its own.
macro_rules! configured {
    ($($config:ident),*) => {
        impl crate::model::Configuration for Config {
            type Hazard = Hazard;
            type Protocol = super::Threads;

            const ALL: &'static [Self] = &[$(Self::$config),*];

            fn name(self) -> &'static str {
                self.name
            }

            fn protocol(self, hazard: Option<Hazard>) -> super::Threads {
                model(self, hazard)
            }
        }
    };
}
use configured;

pub mod bell;
pub mod eventfd;
pub mod futex;
pub mod mach_semaphore;

const WORDS: usize = 6;
const REGISTERS: usize = 3;
const THREADS: usize = 3;

/// A number in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Is(u8),
    Register(usize),
}

/// An instruction. Words of memory and registers are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Load { from: usize, to: usize },
    Add { to: usize, by: u8 },
    Or { to: usize, bits: u8 },
    Swap { at: usize, value: u8, to: usize },
    Fence,
    // Sleeps if the word has the value, compared under the kernel's lock; `None` sleeps without looking.
    FutexWait { at: usize, expected: Option<Value> },
    FutexWake { at: usize, all: bool },
    // Writes an eventfd: adds one, and raises the edge in the word after it.
    TokenWrite { at: usize },
    // Reads an eventfd without blocking: takes what is there.
    TokenTake { at: usize },
    // Reads an eventfd, blocking until there is something to take.
    TokenRead { at: usize },
    // Blocks until the eventfd is readable, and takes nothing.
    LevelWait { at: usize },
    // Blocks until it has become readable since the last such wait.
    EdgeWait { at: usize },
    // Takes one from a semaphore's count, or sleeps and then tries again.
    SemaphoreWait { at: usize },
    // Adds one to it and makes one sleeper try again; for `all`, one for each who sleeps now.
    SemaphoreSignal { at: usize, all: bool },
    // Registers only.
    Copy { from: usize, to: usize },
    Equal { register: usize, value: Value, jump: usize },
    Bit { register: usize, clear: u8, jump: usize },
    Jump(usize),
    Done,
}

impl Op {
    const fn is_local(self) -> bool {
        matches!(self, Self::Copy { .. } | Self::Equal { .. } | Self::Bit { .. } | Self::Jump(_))
    }

    /// The word of a store or read-modify-write that a later load may pass.
    const fn passable(self) -> Option<usize> {
        match self {
            Self::Add { to, .. } | Self::Or { to, .. } => Some(to),
            Self::Swap { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// An instruction and what a chart says about it.
#[derive(Clone, Copy, Debug)]
struct Line {
    op: Op,
    words: &'static str,
}

/// Writes a program; jumps name labels.
#[derive(Debug, Default)]
struct Writer {
    lines: Vec<Line>,
    labels: Vec<(&'static str, usize)>,
    jumps: Vec<(usize, &'static str)>,
}

impl Writer {
    fn op(&mut self, words: &'static str, op: Op) -> &mut Self {
        self.lines.push(Line { op, words });
        self
    }

    fn op_if(&mut self, there: bool, words: &'static str, op: Op) -> &mut Self {
        if there { self.op(words, op) } else { self }
    }

    fn label(&mut self, name: &'static str) -> &mut Self {
        self.labels.push((name, self.lines.len()));
        self
    }

    fn jump(&mut self, to: &'static str) -> &mut Self {
        self.jumps.push((self.lines.len(), to));
        self.op("", Op::Jump(0))
    }

    fn if_equal(&mut self, register: usize, value: Value, to: &'static str) -> &mut Self {
        self.jumps.push((self.lines.len(), to));
        self.op("", Op::Equal { register, value, jump: 0 })
    }

    fn if_clear(&mut self, register: usize, bits: u8, to: &'static str) -> &mut Self {
        self.jumps.push((self.lines.len(), to));
        self.op("", Op::Bit { register, clear: bits, jump: 0 })
    }

    fn copy(&mut self, from: usize, to: usize) -> &mut Self {
        self.op("", Op::Copy { from, to })
    }

    fn done(&mut self, name: &'static str) -> Thread {
        self.label("done").op("", Op::Done);
        for &(line, label) in &self.jumps {
            let (_, target) =
                self.labels.iter().find(|(name, _)| *name == label).expect("every jump has its label");
            match &mut self.lines[line].op {
                Op::Jump(jump) | Op::Equal { jump, .. } | Op::Bit { jump, .. } => *jump = *target,
                _ => unreachable!("only jumps are recorded"),
            }
        }
        Thread { name, lines: std::mem::take(&mut self.lines) }
    }
}

/// A thread's program.
#[derive(Clone, Debug)]
struct Thread {
    name: &'static str,
    lines: Vec<Line>,
}

/// Threads, and the words they share.
#[derive(Clone, Debug)]
pub struct Threads {
    threads: Vec<Thread>,
    words: &'static [&'static str],
    lost: Property,
}

/// One step of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next instruction of a thread.
    Run(u8),
    /// A load of a thread, before the store ahead of it.
    Early(u8),
    /// A futex sleeper wakes for no reason, as the system call may.
    Spurious(u8),
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct At {
    line: u8,
    registers: [u8; REGISTERS],
    /// What the load after the present instruction has already read.
    early: Option<u8>,
    /// Asleep on the futex of that word.
    asleep: Option<u8>,
}

/// Memory and threads between two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    memory: [u8; WORDS],
    threads: [At; THREADS],
}

impl Threads {
    fn line(&self, state: &State, t: usize) -> Line {
        self.threads[t].lines[usize::from(state.threads[t].line)]
    }

    fn possible(&self, state: &State, t: usize) -> bool {
        let at = &state.threads[t];
        at.asleep.is_none()
            && match self.line(state, t).op {
                Op::Done => false,
                Op::TokenRead { at } | Op::LevelWait { at } => state.memory[at] > 0,
                Op::EdgeWait { at } => state.memory[at + 1] > 0,
                _ => true,
            }
    }

    /// The load that may be performed before the present instruction.
    fn early(&self, state: &State, t: usize) -> Option<usize> {
        let at = &state.threads[t];
        let written = self.line(state, t).op.passable()?;
        match self.threads[t].lines.get(usize::from(at.line) + 1)?.op {
            Op::Load { from, .. } if from != written && at.early.is_none() && at.asleep.is_none() => {
                Some(from)
            }
            _ => None,
        }
    }

    fn value(at: &At, value: Value) -> u8 {
        match value {
            Value::Is(value) => value,
            Value::Register(register) => at.registers[register],
        }
    }

    fn run(&self, state: &mut State, t: usize) {
        let op = self.line(state, t).op;
        let (memory, threads) = (&mut state.memory, &mut state.threads);
        threads[t].line += 1;
        match op {
            Op::Load { from, to } => {
                threads[t].registers[to] = threads[t].early.take().unwrap_or(memory[from]);
            }
            Op::Add { to, by } => memory[to] += by,
            Op::Or { to, bits } => memory[to] |= bits,
            Op::Swap { at, value, to } => {
                threads[t].registers[to] = std::mem::replace(&mut memory[at], value);
            }
            Op::FutexWait { at, expected } => {
                if expected.is_none_or(|expected| Self::value(&threads[t], expected) == memory[at]) {
                    threads[t].asleep = Some(at as u8);
                }
            }
            Op::FutexWake { at, all } => {
                let sleepers = threads.iter_mut().filter(|thread| thread.asleep == Some(at as u8));
                sleepers.take(if all { usize::MAX } else { 1 }).for_each(|thread| thread.asleep = None);
            }
            Op::TokenWrite { at } => {
                memory[at] += 1;
                memory[at + 1] = 1;
            }
            Op::TokenTake { at } | Op::TokenRead { at } => (memory[at], memory[at + 1]) = (0, 0),
            Op::EdgeWait { at } => memory[at + 1] = 0,
            Op::SemaphoreWait { at } => match memory[at].checked_sub(1) {
                Some(rest) => memory[at] = rest,
                None => {
                    threads[t].line -= 1;
                    threads[t].asleep = Some(at as u8);
                }
            },
            Op::SemaphoreSignal { at, all } => {
                let sleepers = threads.iter_mut().filter(|thread| thread.asleep == Some(at as u8));
                let woken = sleepers
                    .take(if all { usize::MAX } else { 1 })
                    .map(|thread| thread.asleep = None)
                    .count();
                memory[at] += if all { woken as u8 } else { 1 };
            }
            Op::Fence | Op::LevelWait { .. } => {}
            Op::Copy { .. } | Op::Equal { .. } | Op::Bit { .. } | Op::Jump(_) | Op::Done => {
                unreachable!("local instructions are run by `settle`")
            }
        }
        self.settle(state, t);
    }

    /// Runs on to the next instruction that others can see.
    fn settle(&self, state: &mut State, t: usize) {
        loop {
            let op = self.line(state, t).op;
            if !op.is_local() {
                return;
            }
            let at = &mut state.threads[t];
            at.line += 1;
            let jump = match op {
                Op::Copy { from, to } => {
                    at.registers[to] = at.registers[from];
                    continue;
                }
                Op::Equal { register, value, jump } => {
                    (at.registers[register] == Self::value(at, value)).then_some(jump)
                }
                Op::Bit { register, clear, jump } => (at.registers[register] & clear == 0).then_some(jump),
                Op::Jump(jump) => Some(jump),
                _ => None,
            };
            if let Some(jump) = jump {
                at.line = jump as u8;
            }
        }
    }
}

impl Protocol for Threads {
    type State = State;
    type Action = Action;

    fn initial(&self) -> State {
        let mut state = State::default();
        for t in 0..self.threads.len() {
            self.settle(&mut state, t);
        }
        state
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for t in 0..self.threads.len() {
            if self.possible(state, t) {
                actions.push(Action::Run(t as u8));
            }
        }
        for t in 0..self.threads.len() {
            if self.early(state, t).is_some() {
                actions.push(Action::Early(t as u8));
            }
            if state.threads[t].asleep.is_some() {
                actions.push(Action::Spurious(t as u8));
            }
        }
    }

    fn step(&self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Run(t) => self.run(&mut state, usize::from(t)),
            Action::Early(t) => {
                let from = self.early(&state, usize::from(t)).expect("the step was offered");
                state.threads[usize::from(t)].early = Some(state.memory[from]);
            }
            Action::Spurious(t) => state.threads[usize::from(t)].asleep = None,
        }
        state
    }

    fn interferes(&self, action: Action) -> bool {
        matches!(action, Action::Spurious(_))
    }

    fn broken(&self, _: &State) -> Option<Property> {
        None
    }

    fn invariant(&self, _: &State) -> Option<Property> {
        None
    }

    fn unfinished(&self, state: &State) -> Option<Property> {
        let stuck = (0..self.threads.len()).any(|t| self.line(state, t).op != Op::Done);
        stuck.then_some(self.lost)
    }

    fn lanes(&self) -> Vec<String> {
        let threads = self.threads.iter().map(|thread| thread.name);
        threads.chain(self.words.iter().copied()).map(str::to_owned).collect()
    }

    fn describe(&self, before: &State, action: Action, after: &State) -> Step {
        let lane = |word: usize| self.threads.len() + word;
        match action {
            Action::Spurious(t) => Step::local(usize::from(t), "wakes for no reason"),
            Action::Early(t) => {
                let from = self.early(before, usize::from(t)).expect("the step was offered");
                let words = self.threads[usize::from(t)].lines
                    [usize::from(before.threads[usize::from(t)].line) + 1]
                    .words;
                Step::towards(
                    usize::from(t),
                    lane(from),
                    format!("{words}: {}, before the store ahead of it", before.memory[from]),
                )
            }
            Action::Run(t) => {
                let t = usize::from(t);
                let Line { op, words } = self.line(before, t);
                let seen = |word: usize, value: u8| Step::towards(t, lane(word), format!("{words}: {value}"));
                match op {
                    Op::Load { from, .. } => match before.threads[t].early {
                        Some(early) => Step::local(t, format!("{words}: has already read {early}")),
                        None => seen(from, before.memory[from]),
                    },
                    Op::Swap { at, .. } | Op::TokenTake { at } | Op::TokenRead { at } => {
                        seen(at, before.memory[at])
                    }
                    Op::Add { to, .. } | Op::Or { to, .. } | Op::TokenWrite { at: to } => {
                        Step::towards(t, lane(to), format!("{words}: now {}", after.memory[to]))
                    }
                    Op::FutexWait { at, .. } => {
                        let then =
                            if after.threads[t].asleep.is_some() { "asleep" } else { "the word has changed" };
                        Step::towards(t, lane(at), format!("{words}: {then}"))
                    }
                    Op::SemaphoreWait { at } => {
                        let then = if after.threads[t].asleep.is_some() { "asleep" } else { "takes one" };
                        Step::towards(t, lane(at), format!("{words}: {then}"))
                    }
                    Op::FutexWake { .. } | Op::SemaphoreSignal { .. } => {
                        let woken = |other: &usize| {
                            before.threads[*other].asleep.is_some() && after.threads[*other].asleep.is_none()
                        };
                        match (0..self.threads.len()).find(woken) {
                            Some(other) => Step::towards(t, other, words),
                            None => Step::local(t, format!("{words}: nobody there")),
                        }
                    }
                    Op::LevelWait { at } | Op::EdgeWait { at } => Step::towards(t, lane(at), words),
                    _ => Step::local(t, words),
                }
            }
        }
    }
}

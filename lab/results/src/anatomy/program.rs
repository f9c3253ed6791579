// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that was watched while it did its own work: its threads,
//! who woke whom in it, by what, and what that took.

use serde::{Deserialize, Serialize};

use super::Wake;
use crate::record::Series;

/// The times of a recording end below this, nanoseconds: 104 days,
/// which is what the histograms of its wake-ups reach to.
pub const LONGEST_NS: u64 = 1 << 53;

/// What the kernel's events showed of a program.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Program {
    /// Its name, or the numbers of its processes.
    pub name: String,
    /// By what it was recorded.
    #[serde(default)]
    pub engine: Engine,
    /// How long it was recorded, nanoseconds.
    pub recorded_ns: u64,
    /// How long that lasted, nanoseconds, where it was recorded in
    /// slices; counts and CPU times are those of the slices.
    pub lasted_ns: Option<u64>,
    /// Why recording ended before it was to, if it did.
    pub cut_short: Option<String>,
    /// Wake-ups of its threads after a sleep.
    pub wakes: u64,
    /// Those of them of which the kernel left out that the CPU turned to the thread: their end is
    /// the first thing that it did, or follows from how long it ran then.
    pub ended_by_action: u64,
    /// Wake-ups left out because their sleep began before the
    /// recording, or events of their time were lost.
    pub incomplete: u64,
    /// What recording cost.
    pub cost: Cost,
    /// What spinning, sleeping and waking cost on the machine, where that was measured before.
    pub machine_costs: Option<MachineCosts>,
    /// Its threads, by name.
    pub threads: Vec<Threads>,
    /// Who woke whom by what: those first whose wake-ups took longest together.
    pub edges: Vec<Edge>,
    /// Wake-ups by further edges, which are not in the list.
    #[serde(default)]
    pub further_wakes: u64,
    /// What was recorded of stacks, where that was asked for.
    pub stacks: Option<Stacks>,
    /// Calls that woke several threads each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub herds: Vec<Herd>,
    /// Locks that threads hand on from one sleeper to the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convoys: Vec<Convoy>,
    /// What single threads did, wake-up by wake-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<Sequence>,
}

/// System calls of a wake-up whose price is tried out.
pub const CALLS_OF_A_WAKE: u64 = 2;

/// By what wake-ups are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The kernel's trace events, system calls among them.
    #[default]
    Tracefs,
    /// A program in the kernel, which sees no system calls but those that sleep or wake.
    Bpf,
    /// What any user is told of their own processes: when a thread sleeps, and not who wakes it.
    Own,
}

impl Cost {
    /// CPU time by which the program took more for being recorded, nanoseconds.
    pub fn added_ns(&self, wakes: u64) -> f64 {
        let other = self.calls.saturating_sub(wakes.saturating_mul(CALLS_OF_A_WAKE));
        self.wake_ns * wakes as f64 + self.call_ns * other as f64
    }
}

/// What recording cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    /// CPU time of the recorder while it recorded, nanoseconds.
    pub recorder_ns: u64,
    /// By how much a system call took longer while it was recorded,
    /// nanoseconds, tried out before the recording began.
    pub call_ns: f64,
    /// By how much CPU time a wake-up took more while it was recorded, its two system calls
    /// included, nanoseconds, tried out likewise.
    #[serde(default)]
    pub wake_ns: f64,
    /// System calls of the program that were recorded.
    pub calls: u64,
    /// Events that were recorded.
    pub events: u64,
}

/// What spinning, sleeping and waking cost on a machine, as a run measured it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineCosts {
    /// From the waker's store to a spinning waiter's next step, nanoseconds.
    pub hand_over_ns: f64,
    /// CPU time of waker and waiter for one sleep and its wake-up, on two CPUs, nanoseconds.
    pub sleep_ns: f64,
    /// What a wake-up takes by each mechanism that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<WakeCost>,
}

/// What a wake-up takes by one mechanism in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WakeCost {
    /// The mechanism, as `doorbell list` calls it.
    pub mechanism: String,
    /// Whether both sides were on one CPU.
    pub same_cpu: bool,
    /// The time between two wake-ups, nanoseconds.
    pub gap_ns: u64,
    /// The median of half a round trip, nanoseconds.
    pub wake_ns: f64,
    /// CPU time of waker and waiter, nanoseconds.
    pub cpu_ns: f64,
}

/// All threads of one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Threads {
    /// The name.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// CPU time of all of them, nanoseconds.
    pub ran_ns: u64,
    /// Times that one of them was woken.
    pub wakes: u64,
    /// Calls of theirs that asked whether there was something to do
    /// and came back with nothing, without having slept.
    #[serde(default)]
    pub asked_in_vain: u64,
    /// How long they were ready to run before they ran, on average over their wake-ups, by the kernel's own count, nanoseconds; none where the
    /// recorder did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_mean_ns: Option<f64>,
}

/// One way in which threads were woken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Edge {
    /// Who woke.
    pub waker: Waker,
    /// The name of those that were woken.
    pub waiter: String,
    /// By what.
    pub mechanism: Mechanism,
    /// Wake-ups.
    pub wakes: u64,
    /// Those that ended a wait because its time ran out.
    #[serde(default)]
    pub ran_out: u64,
    /// Those of these after which the thread went on to another call than the same wait, as if
    /// there had been something to do.
    #[serde(default)]
    pub rescued: u64,
    /// From leaving the CPU to the kernel's beginning to wake; where that was not recorded, to running again.
    pub slept: Series,
    /// From the kernel's beginning to wake to running again; empty where that was not recorded.
    pub took: Series,
    /// The place in [`Program::sequences`] of the thread that it woke most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// Its slowest wake-ups, the slowest first; of the worst edges only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Wake>,
    /// Wake-ups of which the stacks were recorded.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub sampled: u64,
    /// The stacks of most of them, those first that were met most often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Sampled>,
}

/// Stacks that were recorded of some of the wake-ups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stacks {
    /// Of so many sleeps those of one, by chance.
    pub one_in: u32,
    /// Stacks that were lost.
    pub lost: u64,
    /// The functions, which stacks have by their place; the kernel's end with `_[k]`.
    pub functions: Vec<String>,
}

/// Stacks that several wake-ups had: functions by their place in [`Stacks::functions`], the
/// innermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sampled {
    /// Where the waiter slept.
    pub waiter: Vec<u32>,
    /// Where the waker woke it; empty where that was not seen.
    pub waker: Vec<u32>,
    /// Wake-ups.
    pub wakes: u64,
}

/// Who wakes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Waker {
    /// A thread of the program.
    Thread {
        /// Its name.
        name: String,
    },
    /// A thread that is not the program's.
    Outside {
        /// Its name, or its number.
        name: String,
    },
    /// The kernel, in an interrupt or in what follows one: whoever ran there is a bystander.
    Kernel,
    /// It was not recorded.
    Unseen,
}

/// By what a thread is woken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mechanism {
    /// How it waited.
    pub wait: Wait,
    /// What it waited for, as far as the record shows.
    pub object: Object,
    /// What ended the wait.
    pub by: By,
}

/// How a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Wait {
    /// On a futex: a lock, a condition variable, a parked thread.
    Futex,
    /// For an event of an epoll set.
    Epoll,
    /// In poll(2) or ppoll(2).
    Poll,
    /// In select(2) or pselect(2).
    Select,
    /// For something to read or receive.
    Read,
    /// For room to write or send into.
    Write,
    /// For a connection, or for its being made.
    Connection,
    /// For time to pass.
    Sleep,
    /// For a signal.
    Signal,
    /// For a child process.
    Child,
    /// For a completion of an io_uring.
    IoUring,
    /// In another system call.
    Call {
        /// Its number.
        number: i64,
    },
    /// In no system call: for a page, or stopped.
    Elsewhere,
    /// It was not recorded.
    Unseen,
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Object {
    /// A word in memory.
    Futex {
        /// Its address.
        address: u64,
    },
    /// An open file.
    File {
        /// What it is.
        file: File,
        /// Its number in the process of the waiter, else of the
        /// waker; none where its name says enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fd: Option<i32>,
    },
    /// The record does not show it, or there is none.
    None,
}

/// What an open file is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum File {
    /// An eventfd.
    Eventfd,
    /// An epoll set.
    Epoll,
    /// A timerfd.
    Timerfd,
    /// A signalfd.
    Signalfd,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket {
        /// `tcp`, `udp`, `unix`, or `socket` where that is not known.
        family: String,
        /// Its own address, where it has one that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
    },
    /// Another file.
    Other,
}

/// What ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum By {
    /// The waker's system call, on what is waited for.
    Call,
    /// A signal that the waker sent.
    Signal {
        /// Its number.
        number: i64,
    },
    /// The end of a thread or process.
    End,
    /// Time that ran out.
    Timer,
    /// A packet that came.
    Network,
    /// Another interrupt.
    Interrupt,
    /// It was not recorded.
    Unseen,
}

/// Calls that each wake several threads at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Herd {
    /// The name of those that called.
    pub waker: String,
    /// The name of those that were woken first.
    pub waiter: String,
    /// Calls that woke three threads or more.
    pub calls: u64,
    /// Threads that they woke, together.
    pub woken: u64,
}

/// A futex that three threads or more both wait on and wake: each
/// that wakes another queues up behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Convoy {
    /// The futex's address.
    pub address: u64,
    /// The name of the thread that was woken most.
    pub waiter: String,
    /// Threads that both waited and woke.
    pub threads: u64,
    /// Wake-ups among them.
    pub wakes: u64,
}

/// What one thread did, in the order of time, as columns of equal length; times in nanoseconds. It
/// has no gap but for what was lost; of slices the next begins where the one before it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sequence {
    /// The thread's number.
    pub task: i32,
    /// Its name.
    pub name: String,
    /// When its first sleep began, nanoseconds after that of the earliest sequence.
    #[serde(default)]
    pub begins_ns: u64,
    /// The edge of each wake-up by its place in [`Program::edges`];
    /// that of further ones is the number of edges.
    pub edge: Vec<u32>,
    /// How long it slept.
    pub slept_ns: Vec<u64>,
    /// From the kernel's beginning to wake to running.
    pub took_ns: Vec<u64>,
    /// From running to the next sleep.
    pub awake_ns: Vec<u64>,
    /// How long the waker stayed on its CPU after it began to wake; none where that was not seen,
    /// or it was no thread of the program. Empty where the recorder did not look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waker_ran_ns: Vec<Option<u64>>,
}

impl Program {
    /// How long all lasted, slices and what was between them, nanoseconds.
    pub fn wall_ns(&self) -> u64 {
        self.lasted_ns.unwrap_or(self.recorded_ns)
    }
}

impl Sequence {
    pub fn len(&self) -> usize {
        self.edge.len()
    }

    pub fn is_empty(&self) -> bool {
        self.edge.is_empty()
    }

    /// Whether its columns are of equal length.
    pub fn is_whole(&self) -> bool {
        let length = self.len();
        let ran = self.waker_ran_ns.len();
        (ran == 0 || ran == length)
            && [&self.slept_ns, &self.took_ns, &self.awake_ns].iter().all(|times| times.len() == length)
    }
}

impl Edge {
    /// Its letter on the screen: A to Z, then AA and on.
    pub fn letter(place: usize) -> String {
        let letter = char::from(b'A' + (place % 26) as u8);
        let before = if place >= 26 { Self::letter(place / 26 - 1) } else { String::new() };
        format!("{before}{letter}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_called_by_letters_as_columns_of_a_sheet_are() {
        let letters = [0, 1, 25, 26, 27, 51, 52, 701, 702].map(Edge::letter);
        assert_eq!(letters, ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell gpu` measures: how a thread waits for a kernel, and how it starts one.
//!
//! Every way starts one kernel and waits until it is done, over and over. They differ in how the end is noticed, or in how the kernel is set
//! off. Adding one is adding a line to [`all`], and what it does to `bench.rs`.

use crate::mechanism::Explanation;
use doorbell_results::nearest::{self, Unknown};
use doorbell_results::record::Subject;
use doorbell_results::record::subject::Noticed;

mod bench;
mod clock;
mod drive;
mod family;
mod window;

pub use family::{Gpus, device};

/// How threads of a context wait, by the driver's own flags (`CU_CTX_SCHED_…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Schedule {
    Auto = 0,
    Spin = 1,
    Yield = 2,
    Block = 4,
}

/// How the end of a kernel is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Stream,
    Event,
    /// The event is asked about, with a sleep of so many microseconds between two looks; 0 is none.
    Query(u64),
    /// The driver's thread calls a function, which wakes.
    HostEventfd,
    HostFutex,
    HostBell,
    /// A word in pinned memory is looked at, written by the kernel itself.
    Flag,
    /// The same, written by the stream behind the kernel.
    WriteValue,
    /// The event is asked about for a time, then the driver blocks.
    Hybrid,
    /// As the library waits.
    Adaptive,
    /// As the library waits in an event loop: one thread, however many streams.
    Events,
}

/// How a kernel is set off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Launch,
    Graph,
    /// It is there and looks at a word in pinned memory.
    Resident,
    /// It stands in a stream behind a wait for a word.
    WaitValue,
}

/// A way to wait for a GPU, or to wake it.
#[derive(Debug)]
pub struct Way {
    pub name: &'static str,
    summary: &'static str,
    schedule: Schedule,
    start: Start,
    wait: Wait,
}

impl Way {
    /// Whether the CPU wakes the GPU by it, so that how long the kernel takes is no matter.
    pub fn wakes_gpu(&self) -> bool {
        self.start != Start::Launch || self.name == "gpu-launch"
    }

    /// Whether its events are made so that who synchronises them sleeps.
    fn blocks(&self) -> bool {
        self.wait == Wait::Hybrid || self.schedule == Schedule::Block
    }

    /// What it is, as it is stored with what was measured: a device is waited for, by looking or by its interrupt.
    pub fn subject(&self) -> Subject {
        let looks = match self.wait {
            Wait::Stream | Wait::Event => self.schedule != Schedule::Block,
            Wait::Query(pause) => pause == 0,
            Wait::Flag | Wait::WriteValue => true,
            Wait::HostEventfd
            | Wait::HostFutex
            | Wait::HostBell
            | Wait::Hybrid
            | Wait::Adaptive
            | Wait::Events => false,
        };
        let noticed = if looks { Noticed::ByPolling } else { Noticed::ByInterrupt };
        let calls = matches!(self.wait, Wait::HostEventfd | Wait::HostFutex | Wait::HostBell | Wait::Events);
        Subject::IoEngine { noticed, kernel_thread: calls }
    }

    pub fn explanation(&self) -> Explanation {
        Explanation {
            summary: self.summary,
            how: "One kernel is started and waited for, over and over. The kernel stamps its begin and its end; a wake-up is the time \
                  from its end to the waiter's first instruction afterwards, or from just before the call to the kernel's begin.",
            kernel: "What spins or looks leaves the kernel of the operating system alone. What blocks sleeps until the GPU's interrupt; a \
                     host function is called by a thread of the driver's, which that interrupt wakes.",
            limits: "Wake-ups are right within the stated bound of the two clocks' relation, about a microsecond. CPU time is that of the \
                     waiter and of all threads of the driver in the process.",
            sources: &["NVIDIA, CUDA Driver API: Context, Stream, Event, Stream Memory Operations"],
        }
    }
}

const fn way(name: &'static str, summary: &'static str, schedule: Schedule, start: Start, wait: Wait) -> Way {
    Way { name, summary, schedule, start, wait }
}

/// Every way, in the order `doorbell list` shows. The one list to extend.
pub fn all() -> &'static [Way] {
    use Schedule::{Auto, Block, Spin, Yield};
    use Start::{Graph, Launch, Resident, WaitValue};
    const ALL: &[Way] = &[
        way("gpu-stream-spin", "the stream is synchronised, spinning", Spin, Launch, Wait::Stream),
        way("gpu-stream-yield", "the stream is synchronised, yielding", Yield, Launch, Wait::Stream),
        way("gpu-stream-block", "the stream is synchronised, asleep", Block, Launch, Wait::Stream),
        way("gpu-stream-auto", "the stream is synchronised, as CUDA chooses", Auto, Launch, Wait::Stream),
        way("gpu-event-spin", "an event is synchronised, spinning", Spin, Launch, Wait::Event),
        way("gpu-event-yield", "an event is synchronised, yielding", Yield, Launch, Wait::Event),
        way("gpu-event-auto", "an event is synchronised, as CUDA chooses", Auto, Launch, Wait::Event),
        way("gpu-event-block", "an event that blocks is synchronised", Block, Launch, Wait::Event),
        way("gpu-query", "an event is asked about without a pause", Auto, Launch, Wait::Query(0)),
        way("gpu-query-pause", "an event is asked about every 20 µs, asleep", Auto, Launch, Wait::Query(20)),
        way("gpu-host-eventfd", "a host function writes an eventfd", Auto, Launch, Wait::HostEventfd),
        way("gpu-host-futex", "a host function wakes a futex", Auto, Launch, Wait::HostFutex),
        way("gpu-host-bell", "a host function rings a bell of the library", Auto, Launch, Wait::HostBell),
        way("gpu-flag", "the kernel's last store is looked at in pinned memory", Auto, Launch, Wait::Flag),
        way(
            "gpu-write-value",
            "the stream's store is looked at in pinned memory",
            Auto,
            Launch,
            Wait::WriteValue,
        ),
        way("gpu-hybrid", "an event is asked about for a time, then blocks", Block, Launch, Wait::Hybrid),
        way(
            "gpu-adaptive",
            "doorbell::gpu: spins as long as it pays, then sleeps",
            Auto,
            Launch,
            Wait::Adaptive,
        ),
        way("gpu-events", "doorbell::gpu: one event loop, however many streams", Auto, Launch, Wait::Events),
        way("gpu-launch", "a launch wakes the GPU", Auto, Launch, Wait::Flag),
        way("gpu-graph", "the launch of a graph wakes the GPU", Auto, Graph, Wait::Flag),
        way("gpu-resident", "a kernel that is there looks at pinned memory", Auto, Resident, Wait::Flag),
        way("gpu-wait-value", "a stream waits for a word of pinned memory", Auto, WaitValue, Wait::Flag),
    ];
    ALL
}

/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static Way, Unknown> {
    nearest::find("way to wait for a GPU", all().iter(), |way| way.name, name)
}

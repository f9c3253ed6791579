// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell gpu` measures: how a thread waits for a kernel, and how it starts one.
//!
//! Every way starts one kernel and waits until it is done, over and over.
//! They differ in how the end is noticed, or in how the kernel is set off.
//! Adding one is adding it to `ways.rs`, and what it does to `bench.rs`.

use doorbell_results::nearest::{self, Unknown};
use doorbell_results::record::Subject;
use doorbell_results::record::subject::Noticed;
use std::time::Duration;

mod bench;
mod clock;
mod device;
mod drive;
mod family;
mod ways;
mod window;

pub use device::{device, node};
pub use family::Gpus;

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
    /// The same, written by the stream after the kernel.
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
    /// It stands in a stream after a wait for a word.
    WaitValue,
}

/// A way to wait for a GPU, or to wake it.
#[derive(Debug)]
pub struct Way {
    pub name: &'static str,
    pub summary: &'static str,
    schedule: Schedule,
    start: Start,
    wait: Wait,
    /// What is called, and who wakes.
    pub calls: &'static str,
    /// What that takes.
    pub costs: &'static str,
}

impl Way {
    /// Whether the CPU wakes the GPU by it, so that how long the kernel takes is no matter.
    pub fn wakes_gpu(&self) -> bool {
        self.start != Start::Launch || self.name == "gpu-launch"
    }

    /// How long it can be measured at a time at most, where that has
    /// an end: a resident kernel leaves by itself.
    pub fn longest(&self) -> Option<Duration> {
        (self.start == Start::Resident).then_some(Duration::from_nanos(drive::RESIDENT_NS))
    }

    /// Whether its events are made so that who synchronises them sleeps.
    fn blocks(&self) -> bool {
        self.wait == Wait::Hybrid || self.schedule == Schedule::Block
    }

    /// What it is, as it is stored with what was measured: a device
    /// is waited for, by looking or by its interrupt.
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
}

/// How each is measured, for readers.
pub const MEASURED: &str = "One kernel is started and waited for, over and over. It stamps its \
    begin and its end; a wake-up is the time from its end to the waiter's first instruction \
    afterwards, or from just before the call to the kernel's begin. That is right within the \
    stated bound of the two clocks' relation, about a microsecond. CPU time is that of the waiter \
    and of all threads of the driver in the process.";
pub const SOURCES: &[&str] = &["NVIDIA, CUDA Driver API: Context, Stream, Event, Stream Memory Operations"];

/// Every way, in the order `doorbell list` shows.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [Way] {
    ways::ALL
}

/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static Way, Unknown> {
    nearest::find("way to wait for a GPU", all().iter(), |way| way.name, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// All twenty-two had one text.
    #[test]
    fn each_way_is_explained_by_what_it_does() {
        let texts = |of: fn(&Way) -> &'static str| all().iter().map(of).collect::<HashSet<_>>().len();
        assert_eq!(texts(|way| way.calls), all().len());
        assert_eq!(texts(|way| way.costs), all().len());
        for way in all().iter().filter(|way| way.wait != Wait::Flag && way.wait != Wait::WriteValue) {
            let call = way.calls.contains("cu") || way.calls.contains("doorbell::gpu");
            assert!(call, "{}: what is called? {}", way.name, way.calls);
        }
    }
}

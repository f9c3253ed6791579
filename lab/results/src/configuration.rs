// SPDX-License-Identifier: MIT OR Apache-2.0
//! One configuration of a plan: everything that tells one trial from another.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::Quantity;
use crate::record::subject::Contexts;
use crate::schedule::Schedule;

/// What is run, on which CPUs, how.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Configuration {
    /// What is measured: the name of a mechanism, of an operation
    /// ([`Pattern::Operation`]), of a kind of task ([`Pattern::Tasks`]), or
    /// of a way to wait for a device ([`Pattern::Io`], [`Pattern::Gpu`]).
    pub subject: String,
    /// Two processes or two threads.
    #[serde(default)]
    pub contexts: Contexts,
    /// Who notifies whom, and when.
    pub pattern: Pattern,
    /// Which moments are taken.
    #[serde(default)]
    pub timing: Timing,
    /// How the waiter waits.
    #[serde(default)]
    pub wait: WaitPolicy,
    /// Where the sides run.
    #[serde(default)]
    pub placement: Placement,
    /// Bytes of message written to shared memory before each
    /// notification and read after each wake-up.
    #[serde(default)]
    pub size: u32,
    /// When the trial ends.
    pub until: Until,
    /// How the sides are scheduled.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// A slowdown put in on purpose, to test whether a comparison finds it.
    pub injected_slowdown_ppm: Option<u32>,
    /// What keeps the machine busy meanwhile; none leaves it as it is.
    pub load: Option<Load>,
    /// What of the kernel's events is recorded beside the stamps; none leaves tracing alone.
    pub trace: Option<Trace>,
    /// What is transferred between ([`Pattern::Io`]).
    pub target: Option<Target>,
    /// The wake-up latency that the kernel is asked to keep to while the trial runs, microseconds,
    /// by `/dev/cpu_dma_latency`.
    pub latency_limit_us: Option<u32>,
    /// When notifications are due in an open loop; none is at even times.
    pub schedule: Option<Schedule>,
    /// How many descriptors that nothing happens at stand in the epoll set in which the waiter
    /// sleeps; none where it sleeps as its mechanism does, and in no set of the harness's.
    pub beside: Option<u32>,
}

impl Configuration {
    /// What a plan gives that says no more: two processes wherever
    /// the scheduler puts them, on a machine left as it is.
    pub fn new(subject: impl Into<String>, pattern: Pattern, until: Until) -> Self {
        Self {
            subject: subject.into(),
            contexts: Contexts::default(),
            pattern,
            timing: Timing::default(),
            wait: WaitPolicy::default(),
            placement: Placement::default(),
            size: 0,
            until,
            scheduler: Scheduler::default(),
            injected_slowdown_ppm: None,
            load: None,
            trace: None,
            target: None,
            latency_limit_us: None,
            schedule: None,
            beside: None,
        }
    }
}

/// What of the kernel's events is recorded beside the stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Trace {
    /// What the stages of every wake-up are cut from.
    Stages,
    /// What explains slow wake-ups, of which the worst are kept.
    Worst {
        /// How many are kept.
        keep: u32,
        /// Nanoseconds that a wake-up must take to be kept.
        above_ns: u64,
    },
}

/// What blocks are transferred to or from.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Target {
    /// A file that the run makes, fills, and removes.
    Created {
        /// Its length.
        bytes: u64,
        /// Where it is made; none where the command was called.
        folder: Option<PathBuf>,
        /// Times it is filled before the first trial.
        passes: u32,
    },
    /// A file that was there before; it is only read.
    File {
        /// Where.
        path: PathBuf,
    },
    /// A block device.
    Device {
        /// Where.
        path: PathBuf,
        /// The name by which the user allowed that it be overwritten.
        consent: Option<String>,
        /// Times it is filled before the first trial.
        #[serde(skip_serializing_if = "crate::is_default", default)]
        passes: u32,
    },
}

/// Which way a block goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// Who notifies whom, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Pattern {
    /// There and back: each side notifies when it was notified; the
    /// initiator pauses `gap_ns` before each round.
    PingPong {
        /// Nanoseconds between the end of a round and the start of the next.
        gap_ns: u64,
    },
    /// One way, closed loop: the next notification follows `gap_ns`
    /// after the waiter has taken the last.
    OneWay {
        /// Nanoseconds between the acknowledgement and the next notification.
        gap_ns: u64,
    },
    /// One way, open loop: notifications are due every `gap_ns` whatever
    /// became of the ones before. Latency counts from the due time, so a
    /// stall is felt by every notification that was due in it.
    OpenLoop {
        /// Nanoseconds between due times.
        gap_ns: u64,
    },
    /// One notifier wakes each of many receivers, every one over an
    /// object of its own, once a round.
    FanOut {
        /// Receivers.
        receivers: u32,
        /// Nanoseconds from the start of a round to the start of the
        /// next, if all have been woken by then.
        interval_ns: u64,
    },
    /// No notification: an operation of the kernel or the CPU, timed
    /// in batches (`doorbell switch`).
    Operation {
        /// Operations between two clock readings; the sample is the batch's time divided by this.
        batch: u32,
    },
    /// Tasks that hand over to one another through a ready queue, or that are only made, run once
    /// and reaped (`doorbell tasks`).
    Tasks {
        /// Tasks alive at once.
        tasks: u32,
        /// Turns of each task, each of which ends by handing over; 0
        /// where the tasks are only made, run once and reaped.
        yields: u32,
    },
    /// Blocks of the configuration's size to or from a device, one at
    /// a time, at random places (`doorbell io`).
    Io {
        /// Which way.
        direction: Direction,
        /// Whether past the page cache.
        direct: bool,
    },
    /// A kernel of a GPU that is set off and waited for, one at a time (`doorbell gpu`).
    Gpu {
        /// How long the kernel works, nanoseconds.
        kernel_ns: u64,
        /// Each kernel works anew for a time between `kernel_ns` and
        /// this, evenly spread by its logarithm; nanoseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up_to_ns: Option<u64>,
        /// Nanoseconds between two kernels; 0 where one follows the other.
        gap_ns: u64,
        /// Streams with a kernel each, and as many threads that wait at once.
        streams: u32,
    },
}

impl Pattern {
    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::PingPong { .. } => "ping-pong",
            Self::OneWay { .. } => "one-way",
            Self::OpenLoop { .. } => "open-loop",
            Self::FanOut { .. } => "fan-out",
            Self::Operation { .. } => "operation",
            Self::Tasks { .. } => "tasks",
            Self::Io { direction: Direction::Read, .. } => "read",
            Self::Io { direction: Direction::Write, .. } => "write",
            Self::Gpu { .. } => "gpu",
        }
    }

    /// Its name for readers.
    pub fn title(self) -> &'static str {
        match self {
            Self::OneWay { .. } => "one way",
            Self::OpenLoop { .. } => "open loop",
            Self::Tasks { yields: 0, .. } => "lives",
            Self::Tasks { .. } => "hand-offs",
            other => other.name(),
        }
    }

    pub fn gap_ns(self) -> u64 {
        match self {
            Self::PingPong { gap_ns } | Self::OneWay { gap_ns } | Self::OpenLoop { gap_ns } => gap_ns,
            Self::FanOut { interval_ns, .. } => interval_ns,
            Self::Gpu { gap_ns, .. } => gap_ns,
            Self::Operation { .. } | Self::Tasks { .. } | Self::Io { .. } => 0,
        }
    }

    /// Whether somebody is notified.
    pub fn notifies(self) -> bool {
        !matches!(self, Self::Operation { .. } | Self::Tasks { .. } | Self::Io { .. } | Self::Gpu { .. })
    }

    /// Whether one side notifies another: there and back, or one way.
    pub fn between_two(self) -> bool {
        matches!(self, Self::PingPong { .. } | Self::OneWay { .. } | Self::OpenLoop { .. })
    }

    /// Whether each side notifies when it was notified.
    pub fn there_and_back(self) -> bool {
        matches!(self, Self::PingPong { .. })
    }

    /// Whether rounds there and back follow one another without a pause.
    pub fn back_to_back(self) -> bool {
        self == Self::PingPong { gap_ns: 0 }
    }

    /// Whether one side notifies and the other waits, in a closed loop.
    pub fn one_way(self) -> bool {
        matches!(self, Self::OneWay { .. })
    }

    pub fn receivers(self) -> Option<u32> {
        if let Self::FanOut { receivers, .. } = self { Some(receivers) } else { None }
    }

    /// Tasks that are alive at once, and turns of each.
    pub fn tasks(self) -> Option<(u32, u32)> {
        if let Self::Tasks { tasks, yields } = self { Some((tasks, yields)) } else { None }
    }

    pub fn batch(self) -> Option<u32> {
        if let Self::Operation { batch } = self { Some(batch) } else { None }
    }

    /// Which way blocks go, and whether past the page cache.
    pub fn transfers(self) -> Option<(Direction, bool)> {
        if let Self::Io { direction, direct } = self { Some((direction, direct)) } else { None }
    }

    /// How long a kernel of a GPU works at least and at most, nanoseconds.
    pub fn kernel_ns(self) -> Option<[u64; 2]> {
        let Self::Gpu { kernel_ns, up_to_ns, .. } = self else { return None };
        Some([kernel_ns, up_to_ns.unwrap_or(kernel_ns).max(kernel_ns)])
    }

    /// How many threads wait for a kernel each.
    pub fn streams(self) -> Option<u32> {
        if let Self::Gpu { streams, .. } = self { Some(streams) } else { None }
    }

    /// The quantity a reader compares first.
    pub fn headline(self) -> Quantity {
        match self {
            Self::PingPong { .. } => Quantity::RoundTrip,
            Self::OneWay { .. } | Self::FanOut { .. } | Self::Gpu { .. } => Quantity::Wake,
            Self::OpenLoop { .. } => Quantity::Response,
            Self::Operation { .. } => Quantity::Operation,
            Self::Tasks { yields: 0, .. } => Quantity::Life,
            Self::Tasks { .. } => Quantity::HandOff,
            Self::Io { .. } => Quantity::Transfer,
        }
    }
}

/// Which moments are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// Only the waiting side's own clock, before and after its wait:
    /// nothing but the notification is exchanged.
    #[default]
    Around,
    /// The notifier stamps the time into shared memory just before
    /// its call; the waiter reads it once awake.
    Stamp,
    /// As `Stamp`, and the notifier has first proven from the
    /// kernel's task state that the waiter sleeps.
    Blocked,
}

/// How the waiter waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum WaitPolicy {
    /// The mechanism's own wait.
    #[default]
    Block,
    /// Look without waiting until there is something.
    Spin,
    /// Look for `spin_ns`, then wait.
    SpinThenBlock {
        /// Nanoseconds of looking.
        spin_ns: u64,
    },
    /// The mechanism's timed wait, over and over.
    Timeout {
        /// Nanoseconds until a wait gives up.
        timeout_ns: u64,
    },
}

/// Where the two sides run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Placement {
    /// The relation of the two CPUs by topology: `same-core`, `smt-sibling`, `same-l2`, `same-l3`,
    /// `same-node`, `other-node`, `cpus` (chosen by number) or `unpinned`. For a fan-out, how
    /// the receivers are spread over the CPUs: see `--pin`.
    pub relation: String,
    /// The initiator's or notifier's CPU, and the other side's; none where the scheduler decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<[u32; 2]>,
}

impl Default for Placement {
    fn default() -> Self {
        Self { relation: "unpinned".to_owned(), cpus: None }
    }
}

impl Placement {
    /// The placement of what needs one CPU: the first; a second side leaves at once.
    #[must_use]
    pub fn alone(&self) -> Self {
        match self.cpus {
            Some([first, _]) => Self { relation: "same-core".to_owned(), cpus: Some([first, first]) },
            None => self.clone(),
        }
    }
}

/// When a trial ends: at whichever comes first.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Until {
    /// Recorded rounds.
    pub count: Option<u64>,
    /// Nanoseconds of the measured window.
    pub time_ns: Option<u64>,
}

impl Until {
    pub fn count(count: u64) -> Self {
        Self { count: Some(count), time_ns: None }
    }
    pub fn time(time: Duration) -> Self {
        Self { count: None, time_ns: Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) }
    }
}

/// How the sides are scheduled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// `SCHED_OTHER`, nice 0.
    #[default]
    Other,
    /// `SCHED_FIFO`, priority 50.
    Fifo,
    /// `SCHED_DEADLINE`: 4 ms of every 10 ms.
    Deadline,
    /// `SCHED_OTHER` with slices of 0.1 ms, the shortest that EEVDF gives.
    Slice,
}

impl Scheduler {
    /// Its name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Deadline => "deadline",
            Self::Slice => "slice",
        }
    }
}

/// What is to be loaded, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Load {
    /// The kind, by name: `sqrt`, `cpu`, `cache`, `memory`, `churn`.
    pub kind: String,
    /// Worker processes.
    pub workers: u32,
    /// Whether worker k is pinned to the k-th usable CPU, counting
    /// round; else the scheduler spreads them.
    pub pinned: bool,
}

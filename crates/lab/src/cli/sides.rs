// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--contexts` and `--scheduler`: what the sides are, and how they are scheduled.

use clap::ValueEnum;

use doorbell_results::configuration::Scheduler;
use doorbell_subjects::mechanism::Contexts;

/// What the sides are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sides {
    /// A process each
    Processes,
    /// Threads of one process
    Threads,
}

/// What they are where nobody says.
pub const USUAL: &str = if cfg!(target_os = "linux") { "processes" } else { "threads" };

impl From<Sides> for Contexts {
    fn from(sides: Sides) -> Self {
        match sides {
            Sides::Processes => Self::Processes,
            Sides::Threads => Self::Threads,
        }
    }
}

/// How they are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// SCHED_OTHER
    Other,
    /// SCHED_FIFO, priority 50
    Fifo,
    /// SCHED_DEADLINE, 4 ms of every 10 ms: for sides that are not pinned
    Deadline,
    /// SCHED_OTHER with slices of 0.1 ms, the shortest that EEVDF gives (kernel 6.12)
    Slice,
}

impl From<Policy> for Scheduler {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Other => Self::Other,
            Policy::Fifo => Self::Fifo,
            Policy::Deadline => Self::Deadline,
            Policy::Slice => Self::Slice,
        }
    }
}

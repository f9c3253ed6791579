// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's events that tell of a wake-up, as far as they are kept.

use serde::{Deserialize, Serialize};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    /// When, in picoseconds from the notifier's stamp where it stands with a wake-up; before that
    /// in ticks of the trace clock.
    pub at: i64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// The task that ran there; 0 is the idle task.
    pub task: i32,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum What {
    /// The task entered the kernel by a system call.
    CallEnters {
        /// Its number.
        number: i64,
    },
    /// The task goes back to user mode from a system call.
    CallReturns {
        /// Its number.
        number: i64,
    },
    /// The kernel begins to wake a task.
    Waking {
        /// The task.
        task: i32,
    },
    /// The task is runnable.
    Runnable {
        /// The task.
        task: i32,
        /// The CPU it is to run on.
        on: u32,
    },
    /// The CPU turns from one task to another.
    Switch {
        /// The one that leaves.
        from: i32,
        /// Its name.
        from_name: String,
        /// Its state as a bit mask; 0 while it would go on running.
        state: i64,
        /// The one that comes.
        to: i32,
        /// Its name.
        to_name: String,
        /// The priority of the one that comes, as the kernel counts:
        /// below 100 is real time, smaller comes first.
        to_priority: i32,
    },
    /// A task is moved between CPUs.
    Migrates {
        /// The task.
        task: i32,
        /// Where it was.
        from: u32,
        /// Where it goes.
        to: u32,
    },
    /// An interrupt is sent to another CPU.
    InterruptSent {
        /// To which.
        to: u32,
    },
    /// Another CPU is told by a flag that its idle loop looks at, without an interrupt.
    IdleTold {
        /// Which.
        cpu: u32,
    },
    /// An interrupt of another CPU, or of the CPU's own timer, is taken.
    InterruptTaken {
        /// Its vector's name.
        name: String,
    },
    /// It is done.
    InterruptDone {
        /// Its vector's name.
        name: String,
    },
    /// A device's interrupt is taken.
    DeviceTaken {
        /// Its number.
        number: i64,
    },
    /// It is done.
    DeviceDone {
        /// Its number.
        number: i64,
    },
    /// Deferred work of interrupts begins.
    SoftBegins {
        /// Its number.
        number: i64,
    },
    /// It is done.
    SoftDone {
        /// Its number.
        number: i64,
    },
    /// The CPU goes idle.
    Idles {
        /// The state it enters.
        state: i64,
    },
    /// The CPU leaves its idle state.
    Wakes,
    /// The task met a page that was not there.
    Fault,
    /// The task has the CPU: told with a wake-up, and not when it came.
    Runs {
        /// Its name.
        name: String,
    },
}

/// The vector by which another CPU asks this one to look for something to run.
pub const RESCHEDULE: &str = "reschedule";
/// The vector by which another CPU has this one do something, such as making a task runnable.
pub const CALL_FUNCTION: &str = "call function";

impl What {
    /// Whether it shows that a CPU was reached by another: it took an
    /// interrupt of one, or left its idle state.
    pub fn reached(&self) -> bool {
        match self {
            Self::InterruptTaken { name } => [RESCHEDULE, CALL_FUNCTION].contains(&name.as_str()),
            Self::Wakes => true,
            _ => false,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the figures that records have beside their times: whoever
//! measures writes them, whoever shows looks for them.

pub mod task {
    /// Context switches that the kernel counted for all tasks while they handed over.
    pub const SWITCHES_COUNTED: &str = "switches counted";
    pub const SWITCHES_PER_HANDOFF: &str = "switches per hand-off";
    pub const TASK_BYTES: &str = "memory per task";
    pub const CEILING: &str = "most tasks here";
    /// Figure: elements that deletes took out, by task.
    pub const MOVES_PER_TASK: &str = "queue moves per task";
}

pub mod timer_ticks {
    pub const TICKS: &str = "ticks per run";
    pub const BY_TICKS: &str = "hand-off by ticks";
    pub const BY_CYCLES: &str = "hand-off by cycle counter";
    pub const STEP: &str = "one tick of a run";
    pub const RUNS: &str = "runs timed by ticks";
    /// Figure: how far means of ten runs by ticks lay from the same
    /// runs by the cycle counter, at worst.
    pub const WORST: &str = "worst error of ten runs";
}

pub mod operation {
    /// The mean of one operation over the whole window, clock readings and all.
    pub const MEAN: &str = "mean";
    pub const RATE: &str = "rate";
    /// Switches the kernel counted for both sides in the window.
    pub const REAL_SWITCHES: &str = "real switches";
    pub const SWITCHES_PER_ROUND: &str = "switches per round";
    /// The window divided by the switches counted.
    pub const PER_SWITCH: &str = "per real switch";
    /// Time in the faults divided by the faults counted.
    pub const PER_FAULT: &str = "per real fault";
    /// How the name of what another tool would print ends.
    pub const AS_PRINTED: &str = " as printed";
    /// The same switches counted in three ways.
    pub const CHECKS: [&str; 3] = ["check-getrusage", "check-proc-status", "check-perf-event"];
}

pub mod transfer {
    /// Interrupts of the device by transfer, those that others' operations explain left out.
    pub const INTERRUPTS: &str = "interrupts per transfer";
    pub const CPU: &str = "CPU per transfer";
    /// CPU time of the kernel's own threads by transfer.
    pub const THREAD_CPU: &str = "CPU of the kernel's thread";
    /// The rate from which on a CPU that only polls costs less than the interrupts do.
    pub const BREAK_EVEN: &str = "break-even rate";
}

pub mod gpu {
    /// How far a wake-up may be off that was taken on two clocks.
    pub const CLOCK_BOUND: &str = "clock bound";
}

pub mod fanout {
    /// The figure that tells how far the order of waking was that of posting.
    pub const ORDER_BY_POST: &str = "order by post";
    /// The figure that tells how far the order of waking was that of the receivers' numbers.
    pub const ORDER_BY_NUMBER: &str = "order by number";
    /// The figure that tells how far latency went with the receivers' numbers.
    pub const LATENCY_BY_NUMBER: &str = "latency by number";
    /// How large a correlation chance alone makes of so many
    /// receivers and rounds, one time in twenty.
    pub const BY_CHANCE: &str = "correlation by chance";
}

pub mod request {
    /// The figure that says how often a waiter that has to ask has asked.
    pub const REQUESTS: &str = "requests per event";
    /// The figure that says what a notifier's own thread takes for each.
    pub const HELPER: &str = "CPU of the server's thread";
}

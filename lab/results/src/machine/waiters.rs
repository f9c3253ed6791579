// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the waiters of every process that uses the library did so far.

use std::time::Instant;

use serde::Serialize;

/// One look at all processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiters {
    /// Those that use the library and may be looked into, by process number.
    pub processes: Vec<User>,
    /// How many processes may not be looked into. Whether they use the library is not known.
    pub closed: usize,
    /// Time that the hypervisor took from all CPUs since boot,
    /// nanoseconds; none where the kernel hides it.
    pub steal_ns: Option<u64>,
    /// When it was taken.
    #[serde(skip)]
    pub taken: Instant,
}

/// A process that uses the library.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct User {
    /// Its number in this PID namespace.
    pub pid: u32,
    /// The user it runs as; none if it ended meanwhile.
    pub uid: Option<u32>,
    /// Its name, as the kernel has it.
    pub command: String,
    /// What became of the profile there, in a word; none for a word of a later release.
    pub profile: Option<&'static str>,
    /// The latency of a sleep that its adaptive waiters assume,
    /// nanoseconds; none before the first of them.
    pub sleep_latency_ns: Option<u32>,
    /// The price of a sleep that they assume, nanoseconds.
    pub sleep_price_ns: Option<u32>,
    /// Time in which its tasks stood ready and had no CPU, nanoseconds since each began; none where
    /// the kernel does not keep it.
    pub ready_ns: Option<u64>,
    /// Time for which the CPU quota of its control group, or of one above it, was used up,
    /// nanoseconds; none without a group that says.
    pub throttled_ns: Option<u64>,
    /// Its waiters.
    pub waiters: Vec<Waiter>,
}

/// One waiter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiter {
    /// Its place in the process's table, which another takes when it is gone.
    pub place: u32,
    /// The way it waits.
    pub name: String,
    /// Waits that ended while spinning.
    pub spun_and_hit: u64,
    /// Waits that spun their whole window and then slept.
    pub spun_in_vain: u64,
    /// Waits that slept.
    pub slept: u64,
    /// Times it was woken, or woke for no reason.
    pub woken: u64,
}

impl Waiters {
    /// Only the processes `pids`, or all if there are none.
    #[must_use]
    pub fn only(mut self, pids: &[u32]) -> Self {
        self.processes.retain(|process| pids.is_empty() || pids.contains(&process.pid));
        self
    }
}

impl Waiter {
    /// Waits so far: each ended either in a spin or in a sleep. Those
    /// that found the ring there are not counted.
    pub fn waits(&self) -> u64 {
        self.spun_and_hit.saturating_add(self.slept)
    }
}

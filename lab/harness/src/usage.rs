// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts for a thread. How it is asked stands in
//! `task`, in a file for each system.

/// What is counted of the calling thread, times in nanoseconds; on Linux what getrusage(2) tells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// See [`SideCounters::voluntary_switches`](doorbell_results::record::SideCounters::voluntary_switches).
    pub voluntary_switches: u64,
    /// See [`SideCounters::involuntary_switches`](doorbell_results::record::SideCounters::involuntary_switches).
    pub involuntary_switches: u64,
    /// See [`SideCounters::minor_faults`](doorbell_results::record::SideCounters::minor_faults).
    pub minor_faults: u64,
    /// See [`SideCounters::major_faults`](doorbell_results::record::SideCounters::major_faults).
    pub major_faults: u64,
    /// See [`SideCounters::user_ns`](doorbell_results::record::SideCounters::user_ns).
    pub user_ns: u64,
    /// See [`SideCounters::system_ns`](doorbell_results::record::SideCounters::system_ns).
    pub system_ns: u64,
}

impl Usage {
    /// What was used since `before`. What the kernel says of user and system time may go back by a
    /// microsecond where it splits their sum anew; that is nothing.
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// This with each count put through `by` together with `other`'s.
    pub(crate) fn with(&self, other: &Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            voluntary_switches: by(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: by(self.involuntary_switches, other.involuntary_switches),
            minor_faults: by(self.minor_faults, other.minor_faults),
            major_faults: by(self.major_faults, other.major_faults),
            user_ns: by(self.user_ns, other.user_ns),
            system_ns: by(self.system_ns, other.system_ns),
        }
    }
}

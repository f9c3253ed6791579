// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts for a thread; `task` asks it.

use doorbell_results::record::SideCounters;

/// What is counted of the calling thread, times in nanoseconds: what getrusage(2) tells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ns: u64,
    pub system_ns: u64,
}

impl Usage {
    /// As the counters of the side called `side`; the rest of them is whoever knows it to say.
    pub(crate) fn counters(&self, side: &str) -> SideCounters {
        SideCounters {
            side: side.to_owned(),
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            minor_faults: self.minor_faults,
            major_faults: self.major_faults,
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            ..SideCounters::default()
        }
    }

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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machine this is: read once, stored in every result.
//!
//! Everything that stands in a file is read below a [`Root`](root::Root), so that recorded trees of real machines can
//! be examined as well as the live one. What is hidden or not there is missing, never made up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod cgroup;
pub mod clock;
pub mod clock_quality;
pub mod cpu_list;
pub mod cpu_time;
pub mod interrupts;
pub mod load;
pub mod pinned;
pub mod placement;
pub mod pressure;
pub mod root;
pub mod topology;

use cpu_list::CpuList;
use root::Root;
use topology::Topology;

/// What a run ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The clock of the run.
    pub clock: clock::Clock,
    /// Its CPUs.
    #[serde(default)]
    pub topology: Topology,
}

impl Machine {
    /// The machine this process runs on.
    pub fn here(clock: clock::Clock) -> Self {
        Self { clock, topology: Topology::read(&Root::live(), affinity()) }
    }
}

/// The affinity mask of the calling thread, as the kernel says when asked.
fn affinity() -> Option<CpuList> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let last = rustix::thread::CpuSet::MAX_CPU;
    Some((0..last).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

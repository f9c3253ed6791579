// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machine this is: read once, stored in every result.
//!
//! Everything that stands in a file is read below a `doorbell_machine::Root`, so
//! that recorded trees of other machines can be examined as well as the live one;
//! what the CPU or the kernel has to be asked for comes as
//! `doorbell_machine::Asked`. What is hidden or not there is missing, never made up.

pub mod block;
pub mod cgroup;
pub mod clock;
pub mod clock_quality;
pub mod cpu_list;
pub mod doctor;
pub mod irq_spread;
pub mod kernel;
pub mod limits;
pub mod line_hop;
pub mod load;
pub mod memory;
pub mod permissions;
pub mod pinning;
pub mod placement;
pub mod power;
pub mod processor;
pub mod scheduling;
pub mod speed;
pub mod topology;
pub mod virtualisation;
pub mod waiters;

use clock_quality::ClockQuality;
use line_hop::LineHop;
use load::Load;
use serde::{Deserialize, Serialize};
use speed::Speed;

/// What a run ran on.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its name, as `uname -n` prints it; the name is what tells the machines of a fleet apart.
    pub host: Option<String>,
    /// The architecture that the program was built for: `x86_64`, `aarch64`, …
    pub architecture: Option<String>,
    /// The clock of the run.
    pub clock: clock::Clock,
    /// How good that clock is.
    pub clock_quality: Option<ClockQuality>,
    /// How fast a fixed piece of work was, before anything was measured.
    pub speed: Option<Speed>,
    /// Its CPUs and what they share.
    #[serde(default)]
    pub topology: topology::Topology,
    /// How fast a cache line moves between CPUs, a pair of each relation the machine has.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub line_hops: Vec<LineHop>,
    /// Its processor.
    #[serde(default)]
    pub processor: processor::Processor,
    /// Its kernel.
    #[serde(default)]
    pub kernel: kernel::Kernel,
    /// Its frequency and idle settings.
    #[serde(default)]
    pub power: power::Power,
    /// Where its device interrupts go.
    #[serde(default)]
    pub interrupts: irq_spread::IrqSpread,
    /// What stands between this process and the hardware.
    #[serde(default)]
    pub virtualisation: virtualisation::Virtualisation,
    /// What this process's control group allows.
    #[serde(default)]
    pub cgroup: cgroup::Cgroup,
    /// How this process was scheduled, and what it inherited.
    #[serde(default)]
    pub scheduling: scheduling::Scheduling,
    /// Its memory.
    #[serde(default)]
    pub memory: memory::Memory,
    /// Limits that mechanisms meet.
    #[serde(default)]
    pub limits: limits::Limits,
    /// What this process may do.
    #[serde(default)]
    pub permissions: permissions::Permissions,
    /// Load by other programs just before the run.
    pub load: Option<Load>,
    /// Steal time since boot as a share of all CPUs' time.
    pub steal_share_since_boot: Option<f64>,
    /// SHA-256 of the program that measured, in hexadecimal.
    pub binary_sha256: Option<String>,
    /// What the doctor found, in the order of its list.
    #[serde(default)]
    pub findings: Vec<doctor::Finding>,
}

impl Machine {
    /// A machine of which nothing is known but the clock.
    pub fn unknown(clock: clock::Clock) -> Self {
        Self { clock, ..Self::default() }
    }
}

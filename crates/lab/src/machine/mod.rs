// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machine this is: read once, stored in every result.
//!
//! Everything that stands in a file is read below a [`Root`], so that recorded trees of other machines can be examined
//! as well as the live one; what the CPU or the kernel has to be asked for comes as [`Asked`]. What is hidden or not
//! there is missing, never made up.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod binary;
pub mod block;
pub mod cgroup;
pub mod clock;
pub mod clock_quality;
pub mod cpu_list;
pub mod cpu_time;
pub mod doctor;
pub mod idle_time;
pub mod interrupts;
pub mod irq_spread;
pub mod kernel;
pub mod limits;
pub mod line_hop;
pub mod load;
pub mod memory;
pub mod permissions;
pub mod pinned;
pub mod placement;
pub mod power;
pub mod pressure;
pub mod processor;
pub mod root;
pub mod run_time;
pub mod task_time;
pub mod topology;
pub mod virtualisation;
pub mod waiters;

use clock_quality::{ClockQuality, DriftStart};
use cpu_list::CpuList;
use line_hop::LineHop;
use load::Load;
use root::Root;

/// How long the load of the machine is looked at before a run: 20 ticks of the kernel's accounting, so that a pair of
/// CPUs is known to 7 % of one.
const LOAD_WINDOW: Duration = Duration::from_millis(200);

/// What a run ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The clock of the run.
    pub clock: clock::Clock,
    /// How good that clock is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_quality: Option<ClockQuality>,
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load: Option<Load>,
    /// Stolen time since boot as a share of all CPUs' time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stolen_share_since_boot: Option<f64>,
    /// SHA-256 of the program that measured, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binary_sha256: Option<String>,
    /// What the doctor found, in the order of its list.
    #[serde(default)]
    pub findings: Vec<doctor::Finding>,
}

/// What no file tells: answers of the CPU and the kernel, and measurements.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The affinity mask.
    pub affinity: Option<CpuList>,
    /// The hypervisor's CPUID signature.
    pub hypervisor: Option<String>,
    /// Whether CPUID shows user interrupts.
    pub user_interrupts: Option<bool>,
    /// Size of `/dev/shm`, bytes.
    pub shm_bytes: Option<u64>,
    /// Whether `/dev/cpu_dma_latency` may be written.
    pub dma_latency: Option<bool>,
    /// SHA-256 of this program.
    pub binary_sha256: Option<String>,
}

impl Asked {
    /// Asks here and now.
    pub fn here() -> Self {
        Self {
            affinity: affinity(),
            hypervisor: virtualisation::signature(),
            user_interrupts: processor::user_interrupts(),
            shm_bytes: limits::shm_bytes(),
            dma_latency: permissions::dma_latency(),
            binary_sha256: binary::sha256(),
        }
    }
}

impl Machine {
    /// The machine this process runs on, with its doctor's findings; takes a quarter of a second, most of it to see
    /// what else is running.
    pub fn here(clock: clock::Clock) -> Self {
        let root = Root::live();
        let (started, drift, before) = (Instant::now(), DriftStart::now(clock), load::Reading::take(&root));
        let mut machine = Self::read(&root, clock, Asked::here());
        let mut quality = ClockQuality::measure(clock, &machine.topology);
        machine.line_hops = LineHop::measure(clock, &machine.topology);
        std::thread::sleep(LOAD_WINDOW.saturating_sub(started.elapsed()));
        let load = before.until(&load::Reading::take(&root), machine.topology.usable.clone());
        quality.drifted(drift);
        machine.load = Some(Load { load_average: pressure::load_average(&root), ..load });
        machine.clock_quality = Some(quality);
        machine.findings = doctor::examine(&machine);
        machine
    }

    /// The machine whose files lie under `root`; without clock quality, hops, load and findings, which are measured.
    pub fn read(root: &Root, clock: clock::Clock, asked: Asked) -> Self {
        let topology = topology::Topology::read(root, asked.affinity);
        let processor = processor::Processor::read(root, asked.user_interrupts);
        let flagged = processor.has("hypervisor");
        Self {
            clock,
            clock_quality: None,
            line_hops: Vec::new(),
            kernel: kernel::Kernel::read(root),
            power: power::Power::read(root, &topology.online),
            interrupts: irq_spread::IrqSpread::read(root),
            virtualisation: virtualisation::Virtualisation::read(root, asked.hypervisor, flagged),
            cgroup: cgroup::Cgroup::read(root),
            memory: memory::Memory::read(root),
            limits: limits::Limits::read(root, asked.shm_bytes),
            permissions: permissions::Permissions::read(root, asked.dma_latency),
            load: None,
            stolen_share_since_boot: cpu_time::CpuTimes::read(root)
                .map(|times| times.stolen_share_since_boot()),
            binary_sha256: asked.binary_sha256,
            findings: Vec::new(),
            topology,
            processor,
        }
    }
}

/// The affinity mask of the calling thread, as the kernel says when asked.
fn affinity() -> Option<CpuList> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let last = rustix::thread::CpuSet::MAX_CPU;
    Some((0..last).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

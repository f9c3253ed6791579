// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machine this is: read once, stored in every result.
//!
//! Everything that stands in a file is read below a [`Root`], so that recorded trees of other
//! machines can be examined as well as the live one; what the CPU or the kernel has to be asked for
//! comes as [`Asked`]. What is hidden or not there is missing, never made up.

// Empty elsewhere, where `doorbell-lab` says in one error what to build instead.
#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    reason = "only the lab uses this crate: a name says what it is, and a comment what it does not say"
)]

use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;
use std::time::Duration;

pub mod binary;
pub mod block;
pub mod cgroup;
pub mod clock;
pub mod clock_quality;
mod counter;
pub mod cpu_time;
pub mod doctor;
pub mod fixed_work;
pub mod idle_time;
pub mod interrupts;
pub mod irq_spread;
pub mod kernel;
pub mod limits;
pub mod line_hop;
pub mod load;
pub mod memory;
pub mod pci;
pub mod permissions;
pub mod pinned;
pub mod power;
pub mod pressure;
pub mod processor;
pub mod ready;
#[cfg(any(test, feature = "sample"))]
pub mod recorded;
pub mod root;
pub mod run_time;
pub mod scheduling;
pub mod system;
pub mod task_time;
pub mod topology;
pub mod virtualisation;
pub mod waiters;

use clock_quality::DriftStart;
use root::Root;

/// How long the load of the machine is looked at before a run: 20 ticks of the kernel's accounting,
/// so that a pair of CPUs is known to 7 % of one.
const LOAD_WINDOW: Duration = Duration::from_millis(200);

/// What no file tells: answers of the CPU and the kernel, and measurements.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub host: Option<String>,
    pub architecture: Option<String>,
    pub affinity: Option<CpuList>,
    pub hypervisor: Option<String>,
    /// Whether an emulator of programs translates this one.
    pub translated: bool,
    /// Whether this program can be started again by its name in `/proc`, as every trial starts it.
    pub own_program: Option<bool>,
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
    pub fn here() -> Self {
        Self {
            host: host(),
            architecture: Some(std::env::consts::ARCH.to_owned()),
            affinity: system::affinity(),
            hypervisor: virtualisation::signature(),
            translated: virtualisation::runs_translated(),
            own_program: Some(permissions::own_program()),
            user_interrupts: processor::user_interrupts(),
            shm_bytes: limits::shm_bytes(),
            dma_latency: permissions::dma_latency(),
            binary_sha256: binary::sha256(),
        }
    }
}

/// The machine this process runs on, with its doctor's findings; takes a quarter of a second, most
/// of it to see what else is running.
pub fn here(clock: Clock) -> Machine {
    let drift = DriftStart::now(clock);
    let mut machine = system::machine(clock, |machine| {
        machine.clock_quality = Some(clock_quality::measure(clock, &machine.topology));
        machine.line_hops = line_hop::measure(clock, &machine.topology);
        machine.speed = fixed_work::speed(clock);
    });
    if let Some(quality) = &mut machine.clock_quality {
        clock_quality::drifted(quality, drift);
    }
    machine.findings = doctor::examine(&machine);
    machine
}

/// The machine whose files lie under `root`; without clock quality,
/// hops, load and findings, which are measured.
pub fn read(root: &Root, clock: Clock, asked: Asked) -> Machine {
    let topology = topology::read(root, asked.affinity);
    let processor = processor::read(root, asked.user_interrupts);
    let flagged = processor.has("hypervisor");
    Machine {
        host: asked.host,
        architecture: asked.architecture,
        clock,
        clock_quality: None,
        speed: None,
        line_hops: Vec::new(),
        kernel: kernel::read(root),
        power: power::read(root, &topology.online),
        interrupts: irq_spread::read(root),
        virtualisation: virtualisation::read(root, asked.hypervisor, flagged, asked.translated),
        cgroup: cgroup::read(root),
        scheduling: scheduling::read(root),
        memory: memory::read(root),
        limits: limits::read(root, asked.shm_bytes),
        permissions: permissions::read(root, asked.dma_latency, asked.own_program),
        load: None,
        steal_share_since_boot: cpu_time::CpuTimes::read(root).map(|times| times.steal_share_since_boot()),
        binary_sha256: asked.binary_sha256,
        findings: Vec::new(),
        topology,
        processor,
    }
}

fn host() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(name).filter(|name| !name.is_empty() && name != "(none)")
}

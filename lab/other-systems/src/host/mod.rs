// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as far as its system tells every program. What it does
//! not tell is missing, never made up.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::topology::{Cpu, Topology};
use doorbell_results::machine::virtualisation::Virtualisation;

#[cfg_attr(windows, path = "windows.rs")]
#[cfg_attr(unix, path = "unix.rs")]
mod system;

pub(crate) use system::{PINS, pin, thread_cpu_ns};

/// The system's monotonic clock, nanoseconds since this program
/// began: on Windows its performance counter.
pub(crate) fn now_ns() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed().as_nanos() as u64
}

/// Nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

pub(crate) fn machine() -> Machine {
    let usable: CpuList = system::usable();
    Machine {
        host: system::host(),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        topology: Topology {
            cpus: usable.iter().map(|id| Cpu { id, ..Cpu::default() }).collect(),
            online: usable.clone(),
            usable,
            ..Topology::default()
        },
        kernel: system::kernel(),
        virtualisation: virtualisation(),
        ..Machine::unknown(Clock::MONOTONIC)
    }
}

/// Whether the processor reports a hypervisor; of these only QEMU's translator is named.
#[cfg(target_arch = "x86_64")]
fn virtualisation() -> Virtualisation {
    use doorbell_results::machine::virtualisation::TRANSLATOR;
    use raw_cpuid::{CpuId, Hypervisor};
    let processor = CpuId::new();
    let emulated = processor.get_hypervisor_info().is_some_and(|info| info.identify() == Hypervisor::QEMU);
    Virtualisation {
        guest: processor.get_feature_info().is_some_and(|features| features.has_hypervisor()),
        emulated,
        hypervisor: emulated.then(|| TRANSLATOR.to_owned()),
        ..Virtualisation::default()
    }
}

/// Other processors are not asked.
#[cfg(not(target_arch = "x86_64"))]
fn virtualisation() -> Virtualisation {
    Virtualisation::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_system_and_a_cpu_on_which_a_thread_may_be_kept_or_says_that_it_keeps_none() {
        let machine = machine();
        assert!(machine.kernel.release.is_some());
        let cpu = machine.topology.usable.iter().next().expect("a CPU");
        assert_eq!(pin(cpu).is_ok(), PINS);
        assert!(now_ns() <= now_ns());
    }
}

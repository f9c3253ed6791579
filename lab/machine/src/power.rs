// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the machine saves power: frequency and idle states, the two
//! things a sleeping waiter's CPU has to come back from.

use doorbell_results::machine::power::*;
use std::collections::BTreeMap;

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;

const CPU: &str = "sys/devices/system/cpu";

pub fn read(root: &Root, online: &CpuList) -> Power {
    let frequency = |cpu: u32, name: &str| root.word(format!("{CPU}/cpu{cpu}/cpufreq/{name}"));
    let by = |name: &str| {
        let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for cpu in online.iter() {
            if let Some(value) = frequency(cpu, name) {
                groups.entry(value).or_default().push(cpu);
            }
        }
        groups.into_iter().map(|(value, cpus)| (value, cpus.into_iter().collect())).collect()
    };
    let frequencies = |name| online.iter().filter_map(move |cpu| frequency(cpu, name)?.parse::<u64>().ok());
    let idle_governor = root
        .word(format!("{CPU}/cpuidle/current_governor"))
        .or_else(|| root.word(format!("{CPU}/cpuidle/current_governor_ro")));
    Power {
        frequency_driver: online.iter().find_map(|cpu| frequency(cpu, "scaling_driver")),
        governors: by("scaling_governor"),
        energy_preferences: by("energy_performance_preference"),
        lowest_khz: frequencies("scaling_min_freq").min(),
        highest_khz: frequencies("scaling_max_freq").max(),
        turbo: turbo(root),
        idle_driver: root.word(format!("{CPU}/cpuidle/current_driver")),
        guest_halt_poll_ns: root
            .value("sys/module/haltpoll/parameters/guest_halt_poll_ns")
            .filter(|_| idle_governor.as_deref() == Some("haltpoll")),
        kvm_halt_poll_ns: root.value("sys/module/kvm/parameters/halt_poll_ns"),
        idle_states: idle_states(root, online),
        idle_governor,
    }
}

/// `no_turbo` of intel_pstate, `boost` of the other drivers.
fn turbo(root: &Root) -> Option<bool> {
    let off = root.value::<u32>(format!("{CPU}/intel_pstate/no_turbo")).map(|no_turbo| no_turbo == 0);
    off.or_else(|| root.value::<u32>(format!("{CPU}/cpufreq/boost")).map(|boost| boost != 0))
}

/// The states of all online CPUs, by the numbers and names of the first CPU that has any.
fn idle_states(root: &Root, online: &CpuList) -> Vec<IdleState> {
    let folder = |cpu: u32| format!("{CPU}/cpu{cpu}/cpuidle");
    let Some(first) = online.iter().find(|cpu| root.has(folder(*cpu))) else { return Vec::new() };
    let state = |number: u32| {
        let file = |cpu: u32, name: &str| format!("{}/state{number}/{name}", folder(cpu));
        let enabled = |cpu: &u32| root.value::<u64>(file(*cpu, "disable")) == Some(0);
        Some(IdleState {
            name: root.word(file(first, "name"))?,
            exit_latency_us: root.value(file(first, "latency")),
            target_residency_us: root.value(file(first, "residency")),
            enabled: online.iter().filter(enabled).collect(),
        })
    };
    root.numbered(folder(first), "state").into_iter().filter_map(state).collect()
}

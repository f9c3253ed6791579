// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the machine saves power: frequency and idle states, the two things a sleeping waiter's CPU has to come back from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cpu_list::CpuList;
use super::root::Root;

const CPU: &str = "sys/devices/system/cpu";

/// Frequency and idle settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// Who sets the frequency: `intel_pstate`, `acpi-cpufreq`, …; missing where the kernel does not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frequency_driver: Option<String>,
    /// CPUs by the governor that decides their frequency.
    pub governors: BTreeMap<String, CpuList>,
    /// CPUs by their energy preference, where the CPU itself decides within it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub energy_preferences: BTreeMap<String, CpuList>,
    /// Lowest frequency that any online CPU may take, kHz.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lowest_khz: Option<u64>,
    /// Highest frequency that any online CPU may take, kHz.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub highest_khz: Option<u64>,
    /// Whether turbo or boost frequencies are allowed; missing where the kernel does not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turbo: Option<bool>,
    /// Who sends CPUs to sleep: `intel_idle`, `acpi_idle`, `haltpoll`; `none` where idle is a bare halt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idle_driver: Option<String>,
    /// Who chooses the idle state: `menu`, `teo`, `haltpoll`, `ladder`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idle_governor: Option<String>,
    /// Idle states, shallow first.
    pub idle_states: Vec<IdleState>,
    /// Longest a guest polls before it halts, nanoseconds, where the haltpoll governor chooses the idle state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guest_halt_poll_ns: Option<u64>,
    /// Longest this kernel, as a host, polls for a halted guest, nanoseconds, where it runs KVM.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kvm_halt_poll_ns: Option<u64>,
}

/// One idle state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Its name: `POLL`, `C1`, `C6`, …
    pub name: String,
    /// Time it takes to leave it, microseconds, as the driver's table says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_latency_us: Option<u64>,
    /// Shortest stay that pays, microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_residency_us: Option<u64>,
    /// Online CPUs on which it is allowed.
    pub enabled: CpuList,
}

impl Power {
    /// Reads it from a machine's files, for the CPUs that are `online`.
    pub fn read(root: &Root, online: &CpuList) -> Self {
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
        let frequencies =
            |name| online.iter().filter_map(move |cpu| frequency(cpu, name)?.parse::<u64>().ok());
        let idle_governor = root
            .word(format!("{CPU}/cpuidle/current_governor"))
            .or_else(|| root.word(format!("{CPU}/cpuidle/current_governor_ro")));
        Self {
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

    /// The longest exit latency of the idle states that `cpus` may enter, with the state's name.
    pub fn deepest(&self, cpus: &CpuList) -> Option<(&str, u64)> {
        let allowed = self.idle_states.iter().filter(|state| !state.enabled.and(cpus).is_empty());
        allowed
            .filter_map(|state| Some((state.name.as_str(), state.exit_latency_us?)))
            .max_by_key(|state| state.1)
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

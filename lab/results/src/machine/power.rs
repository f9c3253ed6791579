// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the machine saves power: frequency and idle states, the two
//! things a sleeping waiter's CPU has to come back from.

use super::cpu_list::CpuList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frequency and idle settings.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Power {
    /// Who sets the frequency: `intel_pstate`, `acpi-cpufreq`, …;
    /// missing where the kernel does not.
    pub frequency_driver: Option<String>,
    /// CPUs by the governor that decides their frequency.
    pub governors: BTreeMap<String, CpuList>,
    /// CPUs by their energy preference, where the CPU itself decides within it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub energy_preferences: BTreeMap<String, CpuList>,
    /// Lowest frequency that any online CPU may take, kHz.
    pub lowest_khz: Option<u64>,
    /// Highest frequency that any online CPU may take, kHz.
    pub highest_khz: Option<u64>,
    /// Whether turbo or boost frequencies are allowed; missing where the kernel does not tell.
    pub turbo: Option<bool>,
    /// Who sends CPUs to sleep: `intel_idle`, `acpi_idle`,
    /// `haltpoll`; `none` where idle is a bare halt.
    pub idle_driver: Option<String>,
    /// Who chooses the idle state: `menu`, `teo`, `haltpoll`, `ladder`.
    pub idle_governor: Option<String>,
    /// Idle states, shallow first.
    pub idle_states: Vec<IdleState>,
    /// Longest a guest polls before it halts, nanoseconds, where the
    /// haltpoll governor chooses the idle state.
    pub guest_halt_poll_ns: Option<u64>,
    /// Longest this kernel, as a host, polls for a halted guest, nanoseconds, where it runs KVM.
    pub kvm_halt_poll_ns: Option<u64>,
}

/// One idle state.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleState {
    /// Its name: `POLL`, `C1`, `C6`, …
    pub name: String,
    /// Time it takes to leave it, microseconds, as the driver's table says.
    pub exit_latency_us: Option<u64>,
    /// Shortest stay that pays, microseconds.
    pub target_residency_us: Option<u64>,
    /// Online CPUs on which it is allowed.
    pub enabled: CpuList,
}

impl Power {
    /// The longest exit latency of the idle states that `cpus` may enter, with the state's name.
    pub fn deepest(&self, cpus: &CpuList) -> Option<(&str, u64)> {
        let allowed = self.idle_states.iter().filter(|state| !state.enabled.and(cpus).is_empty());
        allowed
            .filter_map(|state| Some((state.name.as_str(), state.exit_latency_us?)))
            .max_by_key(|state| state.1)
    }
}

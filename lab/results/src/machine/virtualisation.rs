// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this is a virtual machine or a container, and whose.

use serde::{Deserialize, Serialize};

/// The hypervisor that is none: QEMU's translator, which signs CPUID as TCGTCGTCGTCG.
pub const TRANSLATOR: &str = "QEMU TCG";

/// What stands between this process and the hardware.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Virtualisation {
    /// Whether a hypervisor runs below the kernel, as far as the CPU or the kernel tells.
    pub guest: bool,
    /// The hypervisor's name: from its CPUID signature, else from
    /// `/sys/hypervisor`, the device tree or the firmware.
    pub hypervisor: Option<String>,
    /// Maker and product by the firmware; clouds write their machine type here.
    pub product: Option<String>,
    /// Version and date of the firmware: `2.4.1 of 11/02/2024`.
    pub firmware: Option<String>,
    /// Whether the instructions are translated by software: no time is then a machine's.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub emulated: bool,
    /// The guest this is, where `doorbell vm` booted it.
    pub vm: Option<Vm>,
    /// The kind of container this process is in, by the marks that the usual runtimes leave.
    pub container: Option<String>,
}

/// What a guest of `doorbell vm` runs on, as told by the host that booted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Vm {
    /// `kvm`, `tcg`, `uintr`.
    pub accelerator: String,
    /// The emulator and its version.
    pub emulator: String,
    /// Whether the host is a virtual machine itself.
    pub nested: bool,
    /// Whether the instructions are translated by software, here or
    /// anywhere below: a guest cannot always see that.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub emulated: bool,
    /// What it runs on: the model of the host's processor, and how many CPUs of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Whether instructions were the clock, so that time did not depend on what else the host did.
    pub deterministic: bool,
}

impl Vm {
    /// Where the host puts it in the guest.
    pub const FILE: &str = "run/doorbell/vm.json";
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this is a virtual machine or a container, and whose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::root::Root;

/// The hypervisor that is none: QEMU's translator, which signs CPUID as TCGTCGTCGTCG.
pub const TRANSLATOR: &str = "QEMU TCG";

/// What stands between this process and the hardware.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Virtualisation {
    /// Whether a hypervisor runs below the kernel, as far as the CPU or the kernel tells.
    pub guest: bool,
    /// The hypervisor's name: from its CPUID signature, else from `/sys/hypervisor`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hypervisor: Option<String>,
    /// Maker and product by the firmware; clouds write their machine type here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub product: Option<String>,
    /// Whether the instructions are translated by software: no time is then a machine's.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub emulated: bool,
    /// The guest this is, where `doorbell vm` booted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vm: Option<Vm>,
    /// The kind of container this process is in, by the marks that the usual runtimes leave.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container: Option<String>,
}

/// What a guest of `doorbell vm` runs on, as told by the host that booted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vm {
    /// `kvm`, `tcg`, `uintr`.
    pub accelerator: String,
    /// The emulator and its version.
    pub emulator: String,
    /// Whether the host is a virtual machine itself.
    pub nested: bool,
    /// Whether the instructions are translated by software, here or anywhere below: a guest cannot always see that.
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

impl Virtualisation {
    /// Reads it from a machine's files; `signature` is the hypervisor's by CPUID and `flagged` whether `/proc/cpuinfo`
    /// shows the hypervisor flag.
    pub fn read(root: &Root, signature: Option<String>, flagged: bool) -> Self {
        let dmi = |name: &str| root.word(format!("sys/class/dmi/id/{name}"));
        let product: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
        let hypervisor = signature.or_else(|| root.word("sys/hypervisor/type"));
        let vm: Option<Vm> = root.text(Vm::FILE).and_then(|text| serde_json::from_str(&text).ok());
        Self {
            guest: flagged || hypervisor.is_some() || vm.is_some(),
            emulated: hypervisor.as_deref() == Some(TRANSLATOR) || vm.as_ref().is_some_and(|vm| vm.emulated),
            vm,
            hypervisor,
            product: (!product.is_empty()).then(|| product.join(" ")),
            container: container(root),
        }
    }
}

/// The hypervisor's name by its CPUID signature.
#[cfg(target_arch = "x86_64")]
pub fn signature() -> Option<String> {
    use raw_cpuid::Hypervisor;
    let name = match raw_cpuid::CpuId::new().get_hypervisor_info()?.identify() {
        Hypervisor::Xen => "Xen".to_owned(),
        Hypervisor::VMware => "VMware".to_owned(),
        Hypervisor::HyperV => "Hyper-V".to_owned(),
        Hypervisor::KVM => "KVM".to_owned(),
        Hypervisor::QEMU => TRANSLATOR.to_owned(),
        Hypervisor::Bhyve => "bhyve".to_owned(),
        Hypervisor::QNX => "QNX".to_owned(),
        Hypervisor::ACRN => "ACRN".to_owned(),
        Hypervisor::Unknown(b, c, d) => {
            let bytes: Vec<u8> = [b, c, d].into_iter().flat_map(u32::to_le_bytes).collect();
            String::from_utf8_lossy(&bytes).chars().filter(|letter| letter.is_ascii_graphic()).collect()
        }
    };
    (!name.is_empty()).then_some(name)
}

/// Only x86 has a signature.
#[cfg(not(target_arch = "x86_64"))]
pub fn signature() -> Option<String> {
    None
}

fn container(root: &Root) -> Option<String> {
    if let Some(kind) = root.word("run/systemd/container") {
        return Some(kind);
    }
    let marks = [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        ("run/secrets/kubernetes.io", "kubernetes"),
    ];
    if let Some((_, kind)) = marks.iter().find(|(path, _)| root.has(path)) {
        return Some((*kind).to_owned());
    }
    let cgroups = root.text("proc/1/cgroup").or_else(|| root.text("proc/self/cgroup"))?;
    let words =
        [("kubepods", "kubernetes"), ("docker", "docker"), ("lxc", "lxc"), ("containerd", "containerd")];
    words.iter().find(|(word, _)| cgroups.contains(word)).map(|(_, kind)| (*kind).to_owned())
}

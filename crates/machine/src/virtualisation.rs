// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this is a virtual machine or a container, and whose.

use super::root::Root;
pub use doorbell_results::machine::virtualisation::*;

/// Reads it from a machine's files; `signature` is the hypervisor's by CPUID and `flagged` whether `/proc/cpuinfo`
/// shows the hypervisor flag.
pub fn read(root: &Root, signature: Option<String>, flagged: bool) -> Virtualisation {
    let dmi = |name: &str| root.word(format!("sys/class/dmi/id/{name}"));
    let product: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
    let hypervisor = signature.or_else(|| root.word("sys/hypervisor/type"));
    let vm: Option<Vm> = root.text(Vm::FILE).and_then(|text| serde_json::from_str(&text).ok());
    Virtualisation {
        guest: flagged || hypervisor.is_some() || vm.is_some(),
        emulated: hypervisor.as_deref() == Some(TRANSLATOR) || vm.as_ref().is_some_and(|vm| vm.emulated),
        vm,
        hypervisor,
        product: (!product.is_empty()).then(|| product.join(" ")),
        container: container(root),
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

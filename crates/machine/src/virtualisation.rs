// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this is a virtual machine or a container, and whose.

use super::root::{Root, field};
use doorbell_results::machine::virtualisation::*;

/// Reads it from a machine's files; `signature` is the hypervisor's by CPUID, `flagged` whether `/proc/cpuinfo` shows the hypervisor
/// flag, and `translated` what [`translated`] says.
pub fn read(root: &Root, signature: Option<String>, flagged: bool, translated: bool) -> Virtualisation {
    let dmi = |name: &str| root.word(format!("sys/class/dmi/id/{name}"));
    let product: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
    let translator = || translates(root).then(|| TRANSLATOR.to_owned());
    let hypervisor = signature.or_else(|| root.word("sys/hypervisor/type")).or_else(translator);
    let vm: Option<Vm> = root.text(Vm::FILE).and_then(|text| serde_json::from_str(&text).ok());
    Virtualisation {
        guest: flagged || hypervisor.is_some() || vm.is_some(),
        emulated: translated
            || hypervisor.as_deref() == Some(TRANSLATOR)
            || vm.as_ref().is_some_and(|vm| vm.emulated),
        vm,
        hypervisor,
        product: (!product.is_empty()).then(|| product.join(" ")),
        firmware: dmi("bios_version")
            .zip(dmi("bios_date"))
            .map(|(version, date)| format!("{version} of {date}")),
        container: container(root),
    }
}

/// Whether a processor without CPUID, or the firmware, is one that only QEMU's translator shows. Where neither tells, as with a
/// processor that the translator imitates to its number and without firmware, this is false: nothing in such a guest tells.
fn translates(root: &Root) -> bool {
    // hw/arm/virt.c and hw/riscv/virt.c of QEMU: under KVM it is "KVM Virtual Machine".
    if root.word("sys/class/dmi/id/product_name").as_deref() == Some("QEMU Virtual Machine") {
        return true;
    }
    let text = root.text("proc/cpuinfo").unwrap_or_default();
    let number = |key: &str| {
        let value = field(&text, key)?;
        u64::from_str_radix(value.strip_prefix("0x").unwrap_or(value), 16).ok()
    };
    // Arm: an implementer of 0 is reserved for software (MIDR_EL1); `-cpu max` has it.
    if number("CPU implementer") == Some(0) {
        return true;
    }
    // RISC-V, of no vendor: 42 is QEMU's number among architectures (marchid.md of the ISA manual), QEMU 7.1 to 8.1 have their version
    // there, and later ones nothing, where KVM shows the host's.
    let architecture = number("marchid").filter(|_| number("mvendorid") == Some(0));
    let virt =
        || root.text("sys/firmware/devicetree/base/model").is_some_and(|it| it.starts_with("riscv-virtio"));
    if architecture.is_some_and(|number| number == 42 || number >= 0x1_0000 || (number == 0 && virt())) {
        return true;
    }
    // Arm: every PMUv3 counts mispredicted branches but the translator's, which has none to count (Arm ARM, common events required).
    const PMUS: &str = "sys/bus/event_source/devices";
    let arm = root.names(PMUS).into_iter().filter(|name| name.starts_with("armv8"));
    let events: Vec<Vec<String>> = arm.map(|name| root.names(format!("{PMUS}/{name}/events"))).collect();
    let counts = |events: &Vec<String>, name: &str| events.iter().any(|event| event == name);
    events.iter().any(|events| counts(events, "cpu_cycles") && !counts(events, "br_mis_pred"))
}

/// Whether an emulator of programs translates this one, as qemu-user does: it answers for `/proc/self/exe` itself, while the kernel runs
/// another program, which is seen by way of the thread.
pub fn translated() -> bool {
    use std::os::unix::fs::MetadataExt;
    // Opened, as a look at the name follows the kernel's link and not the emulator's answer.
    let program = |path: &str| {
        let data = std::fs::File::open(path).and_then(|file| file.metadata()).ok()?;
        Some((data.dev(), data.ino()))
    };
    let (own, kernels) = (program("/proc/self/exe"), program("/proc/thread-self/exe"));
    own.is_some() && kernels.is_some() && own != kernels
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What a machine with these files is.
    fn of(files: &[(&str, &str)]) -> Virtualisation {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        read(&Root::at(folder.path()), None, false, false)
    }

    /// Only x86 has a signature, so that an emulated Arm passed for a machine and its figures for times.
    #[test]
    fn processors_and_firmware_that_only_a_translator_shows_are_emulated() {
        let pmu = "sys/bus/event_source/devices/armv8_cortex_a57/events";
        let cycles = format!("{pmu}/cpu_cycles");
        let emulated: [&[(&str, &str)]; 6] = [
            &[("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x00\nCPU part\t: 0x051\n")],
            &[("sys/class/dmi/id/product_name", "QEMU Virtual Machine\n")],
            &[("proc/cpuinfo", "hart\t: 0\nmvendorid\t: 0x0\nmarchid\t\t: 0x70212\n")],
            &[("proc/cpuinfo", "hart\t: 0\nmvendorid\t: 0x0\nmarchid\t\t: 0x2a\n")],
            &[
                ("proc/cpuinfo", "hart\t: 0\nmvendorid\t: 0x0\nmarchid\t\t: 0x0\n"),
                ("sys/firmware/devicetree/base/model", "riscv-virtio,qemu\0"),
            ],
            &[(&cycles, "event=0x0011\n"), ("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd07\n")],
        ];
        for files in emulated {
            let found = of(files);
            assert!(found.emulated && found.guest, "{files:?}: {found:?}");
            assert_eq!(found.hypervisor.as_deref(), Some(TRANSLATOR));
        }
        let mispredicted = format!("{pmu}/br_mis_pred");
        let real: [&[(&str, &str)]; 4] = [
            &[(&cycles, "event=0x0011\n"), (&mispredicted, "event=0x0010\n")],
            &[("sys/class/dmi/id/product_name", "KVM Virtual Machine\n")],
            &[("proc/cpuinfo", "hart\t: 0\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\n")],
            &[("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")],
        ];
        for files in real {
            assert!(!of(files).emulated, "{files:?}");
        }
    }

    /// ci/test/23-processors.sh runs this under an emulator of programs, and says so.
    #[test]
    fn a_program_that_another_translates_knows_it() {
        assert_eq!(translated(), std::env::var_os("DOORBELL_TRANSLATED").is_some());
    }
}

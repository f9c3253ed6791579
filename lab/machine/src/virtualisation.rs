// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether this is a virtual machine or a container, and whose.

use super::root::{Root, field};
use doorbell_results::machine::virtualisation::*;

/// Reads it from a machine's files; `signature` is the hypervisor's by CPUID, `flagged` whether
/// `/proc/cpuinfo` shows the hypervisor flag, and `translated` what [`runs_translated`] says.
pub fn read(root: &Root, signature: Option<String>, flagged: bool, translated: bool) -> Virtualisation {
    let dmi = |name: &str| root.word(format!("sys/class/dmi/id/{name}"));
    let product: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
    let translator = || shows_translator(root).then(|| TRANSLATOR.to_owned());
    let hypervisor = signature
        .or_else(|| root.word("sys/hypervisor/type"))
        .or_else(translator)
        .or_else(|| hypervisor_by_device_tree(root))
        .or_else(|| hypervisor_by_firmware(root));
    let vm: Option<Vm> = root.text(Vm::FILE).and_then(|text| serde_json::from_str(&text).ok());
    Virtualisation {
        guest: flagged || hypervisor.is_some() || vm.is_some(),
        emulated: translated
            || hypervisor.as_deref() == Some(TRANSLATOR)
            || vm.as_ref().is_some_and(|vm| vm.emulated),
        vm,
        hypervisor,
        product: (!product.is_empty()).then(|| product.join(" ")).or_else(|| device_tree(root, "model")),
        firmware: dmi("bios_version")
            .zip(dmi("bios_date"))
            .map(|(version, date)| format!("{version} of {date}")),
        container: container(root),
    }
}

/// The first string of a property of the device tree's root.
fn device_tree(root: &Root, property: &str) -> Option<String> {
    let text = root.text(format!("sys/firmware/devicetree/base/{property}"))?;
    let first = text.split('\0').next()?.trim();
    (!first.is_empty()).then(|| first.to_owned())
}

/// What a hypervisor's own node is compatible with (devicetree bindings arm/xen; systemd
/// src/basic/virt.c), or that the machine is QEMU's, which its channel for the firmware tells:
/// whether by KVM nobody says there.
fn hypervisor_by_device_tree(root: &Root) -> Option<String> {
    match device_tree(root, "hypervisor/compatible") {
        Some(name) if name.contains("xen") => return Some("Xen".to_owned()),
        Some(name) if name.contains("kvm") => return Some("KVM".to_owned()),
        Some(name) => return Some(name),
        None => {}
    }
    let of_qemu =
        root.names("sys/firmware/devicetree/base").into_iter().any(|name| name.starts_with("fw-cfg"));
    of_qemu.then(|| "QEMU, by KVM or translated".to_owned())
}

/// Whose machine it is by DMI, where there is no CPUID to ask: on x86 a missing signature means a
/// machine (systemd src/basic/virt.c).
fn hypervisor_by_firmware(root: &Root) -> Option<String> {
    let x86 = root.text("proc/cpuinfo").is_some_and(|text| field(&text, "flags").is_some());
    let word = |name: &str| root.word(format!("sys/class/dmi/id/{name}")).unwrap_or_default();
    let (vendor, product) = (word("sys_vendor"), word("product_name"));
    // Clouds let whole machines too, under the same maker's name.
    if x86 || product.contains("metal") {
        return None;
    }
    let name = match (vendor.as_str(), product.as_str()) {
        (_, "KVM Virtual Machine") | ("KVM" | "OpenStack" | "KubeVirt" | "Amazon EC2" | "Google", _) => "KVM",
        ("Microsoft Corporation", "Virtual Machine") => "Hyper-V",
        ("VMware, Inc.", _) => "VMware",
        ("Xen", _) => "Xen",
        ("Apple Inc.", product) if product.starts_with("Apple Virtualization") => "Apple Virtualization",
        ("Parallels International GmbH." | "Parallels Software International Inc.", _) => "Parallels",
        ("QEMU", _) => "QEMU, by KVM or translated",
        _ => return None,
    };
    Some(name.to_owned())
}

/// Whether a processor without CPUID, or the firmware, is one that only QEMU's translator shows.
/// Where neither tells, as with a processor that the translator imitates to its number and without
/// firmware, this is false: nothing in such a guest tells.
fn shows_translator(root: &Root) -> bool {
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
    // RISC-V, of no vendor: 42 is QEMU's number among architectures (marchid.md of the ISA manual),
    // QEMU 7.1 to 8.1 have their version there, and later ones nothing, where KVM shows the host's.
    let architecture = number("marchid").filter(|_| number("mvendorid") == Some(0));
    let virt =
        || root.text("sys/firmware/devicetree/base/model").is_some_and(|it| it.starts_with("riscv-virtio"));
    if architecture.is_some_and(|number| number == 42 || number >= 0x1_0000 || (number == 0 && virt())) {
        return true;
    }
    // Arm: every PMUv3 counts mispredicted branches but the translator's, which has none to count (Arm
    // ARM, common events required).
    const PMUS: &str = "sys/bus/event_source/devices";
    let arm = root.names(PMUS).into_iter().filter(|name| name.starts_with("armv8"));
    let events: Vec<Vec<String>> = arm.map(|name| root.names(format!("{PMUS}/{name}/events"))).collect();
    let counts = |events: &Vec<String>, name: &str| events.iter().any(|event| event == name);
    events.iter().any(|events| counts(events, "cpu_cycles") && !counts(events, "br_mis_pred"))
}

/// Whether an emulator of programs translates this one, as qemu-user
/// does: it answers for `/proc/self/exe` itself, while the kernel
/// runs another program, which is seen by way of the thread.
pub fn runs_translated() -> bool {
    use std::os::unix::fs::MetadataExt;
    // Opened, as a look at the name follows the kernel's link and not the emulator's answer.
    #[expect(clippy::disallowed_methods, reason = "the kernel's link to this program")]
    let program = |path: &str| {
        let data = std::fs::File::open(path).and_then(|file| file.metadata()).ok()?;
        Some((data.dev(), data.ino()))
    };
    let (own, kernels) = (program("/proc/self/exe"), program("/proc/thread-self/exe"));
    own.is_some() && kernels.is_some() && own != kernels
}

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
    use super::*;
    use crate::recorded::Recorded;

    fn of(files: &[(&str, &str)]) -> Virtualisation {
        read(&Recorded::of(files).root(), None, false, false)
    }

    /// Only x86 has a signature, so that an emulated Arm passed for a
    /// machine and its figures for times.
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

    /// Without CPUID a guest of KVM passed for a machine.
    #[test]
    fn a_hypervisor_is_known_by_its_node_or_its_firmware_where_there_is_no_signature() {
        const TREE: &str = "sys/firmware/devicetree/base";
        let node = format!("{TREE}/hypervisor/compatible");
        let arm = ("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
        let vendor = "sys/class/dmi/id/sys_vendor";
        let product = "sys/class/dmi/id/product_name";
        let channel = format!("{TREE}/fw-cfg@9020000/compatible");
        let guests: [(&[(&str, &str)], &str); 5] = [
            (&[arm, (&node, "xen,xen-4.17\0xen,xen\0")], "Xen"),
            (&[arm, (&node, "linux,kvm\0")], "KVM"),
            (&[arm, (product, "KVM Virtual Machine\n")], "KVM"),
            (&[arm, (vendor, "Amazon EC2\n"), (product, "c6g.large\n")], "KVM"),
            (&[arm, (&channel, "qemu,fw-cfg-mmio\0")], "QEMU, by KVM or translated"),
        ];
        for (files, name) in guests {
            let found = of(files);
            assert!(found.guest && !found.emulated, "{files:?}: {found:?}");
            assert_eq!(found.hypervisor.as_deref(), Some(name), "{files:?}");
        }
        let model = format!("{TREE}/model");
        let machines: [&[(&str, &str)]; 3] = [
            &[arm, (vendor, "Amazon EC2\n"), (product, "c6g.metal\n")],
            &[arm, (&model, "Raspberry Pi 4 Model B Rev 1.4\0")],
            &[("proc/cpuinfo", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu tsc\n"), (vendor, "Amazon EC2\n")],
        ];
        for files in machines {
            assert!(!of(files).guest, "{files:?}");
        }
        assert_eq!(of(machines[1]).product.as_deref(), Some("Raspberry Pi 4 Model B Rev 1.4"));
    }

    /// ci/test/23-processors.sh runs this under an emulator of programs, and says so.
    #[test]
    fn a_program_that_another_translates_knows_it() {
        assert_eq!(runs_translated(), std::env::var_os("DOORBELL_TRANSLATED").is_some());
    }
}

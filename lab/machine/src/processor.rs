// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU: its model, its microcode, the features that waking and
//! timing depend on, its mitigations.

use super::root::{Root, field};
use doorbell_results::machine::processor::*;

/// Feature flags worth knowing, of the hundred that `/proc/cpuinfo` lists: those of the processor's
/// counter, of waiting in user mode, of user interrupts, and of virtualisation.
const FLAGS: [&str; 18] = [
    "arat",
    "atomics",
    "constant_tsc",
    "evtstrm",
    "hypervisor",
    "monitor",
    "mwaitx",
    "nonstop_tsc",
    "rdtscp",
    "tsc",
    "tsc_adjust",
    "tsc_deadline_timer",
    "tsc_known_freq",
    "tsc_reliable",
    "uintr",
    "waitpkg",
    "wfxt",
    "zawrs",
];

/// What the parts of ARM processors are called that servers have, by implementer and part of their
/// identification register; the kernel shows numbers alone (util-linux sys-utils/lscpu-arm.c; each
/// maker's reference manual, MIDR_EL1).
const ARM: [(&str, &str, &str); 24] = [
    ("0x41", "0xd03", "Cortex-A53"),
    ("0x41", "0xd05", "Cortex-A55"),
    ("0x41", "0xd07", "Cortex-A57"),
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd09", "Cortex-A73"),
    ("0x41", "0xd0a", "Cortex-A75"),
    ("0x41", "0xd0b", "Cortex-A76"),
    ("0x41", "0xd0c", "Neoverse-N1"),
    ("0x41", "0xd40", "Neoverse-V1"),
    ("0x41", "0xd41", "Cortex-A78"),
    ("0x41", "0xd44", "Cortex-X1"),
    ("0x41", "0xd49", "Neoverse-N2"),
    ("0x41", "0xd4a", "Neoverse-E1"),
    ("0x41", "0xd4f", "Neoverse-V2"),
    ("0x41", "0xd84", "Neoverse-V3"),
    ("0x41", "0xd8e", "Neoverse-N3"),
    ("0x43", "0x0a1", "ThunderX"),
    ("0x43", "0x0af", "ThunderX2"),
    ("0x46", "0x001", "A64FX"),
    ("0x48", "0xd01", "TaiShan-v110"),
    ("0x48", "0xd02", "TaiShan-v120"),
    ("0x4e", "0x004", "Carmel"),
    ("0xc0", "0xac3", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere-1a"),
];

/// Reads it from a machine's files; `user_interrupts` is the CPU's own answer.
pub fn read(root: &Root, user_interrupts: Option<bool>) -> Processor {
    let text = root.text("proc/cpuinfo").unwrap_or_default();
    let first = text.split("\n\n").next().unwrap_or_default();
    let word = |key: &str| field(first, key).filter(|value| !value.is_empty()).map(str::to_owned);
    let model = |keys: [&str; 3]| {
        let parts: Vec<String> = keys.iter().filter_map(|key| word(key)).collect();
        (!parts.is_empty()).then(|| parts.join("-"))
    };
    let listed = word("flags").or_else(|| word("Features")).unwrap_or_default();
    // RISC-V lists its extensions in one word, those of several letters after `_`.
    let isa = word("isa").unwrap_or_default();
    let has = |flag: &&str| listed.split_ascii_whitespace().chain(isa.split('_')).any(|word| word == *flag);
    let arm = || {
        let (implementer, part) = (word("CPU implementer")?, word("CPU part")?);
        let known = ARM.iter().find(|(maker, number, _)| (*maker, *number) == (&*implementer, &*part));
        known.map(|(.., name)| (*name).to_owned())
    };
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let mitigation = |name: String| Some((name.clone(), root.word(format!("{FOLDER}/{name}"))?));
    Processor {
        vendor: ["vendor_id", "CPU implementer", "mvendorid"].into_iter().find_map(word),
        model_name: word("model name")
            .or_else(arm)
            .or_else(|| word("uarch"))
            .or_else(|| in_device_tree(root)),
        model: model(["cpu family", "model", "stepping"])
            .filter(|_| word("cpu family").is_some())
            .or_else(|| model(["CPU architecture", "CPU part", "CPU revision"]))
            .or_else(|| model(["isa", "marchid", "mimpid"])),
        microcode: word("microcode"),
        flags: FLAGS.iter().filter(|flag| has(flag)).map(|flag| (*flag).to_owned()).collect(),
        user_interrupts,
        mitigations: root.names(FOLDER).into_iter().filter_map(mitigation).collect(),
    }
}

/// What the first CPU's node calls itself, as `arm,cortex-a72`, where
/// it is more than a family's name.
fn in_device_tree(root: &Root) -> Option<String> {
    const CPUS: &str = "sys/firmware/devicetree/base/cpus";
    let cpu = root.names(CPUS).into_iter().find(|name| name.starts_with("cpu@"))?;
    // Names from the most to the least exact one, each with a zero after it.
    let text = root.text(format!("{CPUS}/{cpu}/compatible"))?;
    let name = text.split('\0').next()?.trim();
    (!matches!(name, "" | "riscv" | "arm,armv8")).then(|| name.to_owned())
}

/// Whether the CPU says that it has user interrupts (Intel SDM vol.
/// 2A, CPUID leaf 7 sub-leaf 0, EDX bit 5).
#[cfg(target_arch = "x86_64")]
pub fn user_interrupts() -> Option<bool> {
    const EXTENDED_FEATURES: u32 = 7;
    let leaf = |leaf| core::arch::x86_64::__cpuid_count(leaf, 0);
    Some(leaf(0).eax >= EXTENDED_FEATURES && leaf(EXTENDED_FEATURES).edx >> 5 & 1 == 1)
}

/// Only x86 has them.
#[cfg(not(target_arch = "x86_64"))]
pub fn user_interrupts() -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    fn of(files: &[(&str, &str)]) -> Processor {
        read(&Recorded::of(files).root(), None)
    }

    #[test]
    fn an_arm_processor_is_named_by_its_numbers_and_else_by_the_device_tree() {
        let text = "processor\t: 0\nFeatures\t: fp asimd evtstrm atomics\nCPU implementer\t: 0x41\nCPU architecture: 8\n\
                    CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        let known = of(&[("proc/cpuinfo", text)]);
        assert_eq!(known.model_name.as_deref(), Some("Neoverse-N1"));
        assert_eq!(known.model.as_deref(), Some("8-0xd0c-1"));
        assert!(known.has("evtstrm") && known.has("atomics"));
        let node = ("sys/firmware/devicetree/base/cpus/cpu@0/compatible", "arm,cortex-a999\0arm,armv8\0");
        let unknown = of(&[("proc/cpuinfo", &text.replace("0xd0c", "0xfff")), node]);
        assert_eq!(unknown.model_name.as_deref(), Some("arm,cortex-a999"));
    }

    #[test]
    fn a_risc_v_processor_is_named_by_what_the_kernel_or_the_device_tree_says() {
        let text = "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc_zicntr_zawrs_zba\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n\
                    mvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427\n";
        let known = of(&[("proc/cpuinfo", text)]);
        assert_eq!(known.model_name.as_deref(), Some("sifive,u74-mc"));
        assert_eq!(known.vendor.as_deref(), Some("0x489"));
        assert!(known.has("zawrs") && !known.has("wfxt"));
        let family = ("sys/firmware/devicetree/base/cpus/cpu@0/compatible", "riscv\0");
        assert_eq!(of(&[("proc/cpuinfo", &text.replace("uarch", "other")), family]).model_name, None);
    }
}

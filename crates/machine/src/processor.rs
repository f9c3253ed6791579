// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU: its model, its microcode, the features that waking and timing depend on, its mitigations.

use doorbell_results::machine::processor::*;

use super::root::{Root, field};

/// Feature flags worth knowing, of the hundred that `/proc/cpuinfo` lists: those of the time-stamp counter, of waiting
/// in user mode, of user interrupts, and of virtualisation.
const FLAGS: [&str; 14] = [
    "arat",
    "constant_tsc",
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
    let has = |flag: &&str| listed.split_ascii_whitespace().any(|word| word == *flag);
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let mitigation = |name: String| Some((name.clone(), root.word(format!("{FOLDER}/{name}"))?));
    Processor {
        vendor: word("vendor_id").or_else(|| word("CPU implementer")),
        model_name: word("model name"),
        model: model(["cpu family", "model", "stepping"])
            .filter(|_| word("cpu family").is_some())
            .or_else(|| model(["CPU architecture", "CPU part", "CPU revision"])),
        microcode: word("microcode"),
        flags: FLAGS.iter().filter(|flag| has(flag)).map(|flag| (*flag).to_owned()).collect(),
        user_interrupts,
        mitigations: root.names(FOLDER).into_iter().filter_map(mitigation).collect(),
    }
}

/// Whether the CPU says that it has user interrupts (Intel SDM vol. 2A, CPUID leaf 7 sub-leaf 0, EDX bit 5).
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

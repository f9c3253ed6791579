// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel does against faults of the CPU, at each entry and each switch.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/admin-guide/hw-vuln/";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let all = &machine.processor.mitigations;
    if all.is_empty() {
        return Verdict::ok("not told by the kernel");
    }
    let with = |word: &str| -> Vec<&str> {
        all.iter().filter(|(_, state)| state.starts_with(word)).map(|(name, _)| name.as_str()).collect()
    };
    let (active, vulnerable) = (with("Mitigation"), with("Vulnerable"));
    let off = machine
        .kernel
        .parameter("mitigations")
        .is_some_and(|value| value.split(',').any(|word| word == "off"));
    if off {
        return Verdict::note(
            "off on the kernel's command line",
            "system calls and switches are cheaper than on a machine with the kernel's defaults",
            "carry these figures only to machines booted the same way",
        );
    }
    let mut seen = if active.is_empty() {
        "none active".to_owned()
    } else {
        format!("active for {}", active.join(", "))
    };
    if !vulnerable.is_empty() {
        seen += &format!("; none for {}", vulnerable.join(", "));
    }
    if active.is_empty() {
        return Verdict::ok(seen);
    }
    Verdict::note(
        seen,
        "each system call and switch pays for them; CPUs that need others differ by that much",
        "leave them on; compare only machines whose lists agree",
    )
}

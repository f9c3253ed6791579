// SPDX-License-Identifier: MIT OR Apache-2.0
//! User interrupts: whether the CPU has them, and whether the kernel gives them to programs.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str =
    "Intel SDM vol. 3A, User Interrupts; doorbell's book, user-interrupts-without-the-hardware.md";

pub(super) fn examine(machine: &Machine) -> Verdict {
    // The kernel lists the flag only once it saves their state for programs.
    let usable = machine.processor.has("uintr");
    match machine.processor.user_interrupts {
        _ if usable => Verdict::ok("present, and the kernel gives them to programs"),
        Some(true) => Verdict::note(
            "present: the CPU has them; this kernel gives them to no program",
            "SENDUIPI raises #UD in a program, for the kernel leaves CR4.UINTR clear: no mechanism \
             here can use them",
            "load a driver that enables them, or run a kernel that does",
        ),
        Some(false) => Verdict::ok("none: the CPU has no user interrupts"),
        None => Verdict::ok("unknown: the CPU was not asked"),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the kernel lets a woken task take the CPU from what it is doing.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel/Kconfig.preempt; kernel Documentation/core-api/real-time/";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let release = machine.kernel.release.as_deref().unwrap_or("unknown kernel");
    match machine.kernel.preemption.as_deref() {
        Some("rt") => Verdict::ok(format!("{release}, real-time")),
        Some(model) => Verdict::note(
            format!("{release}, {model}"),
            "long stretches of kernel code cannot be interrupted everywhere: the longest time seen is a \
             sample, not a bound",
            "for bounds use a kernel with PREEMPT_RT, and days instead of seconds",
        ),
        None => Verdict::note(
            format!("{release}, preemption not told"),
            "the longest time seen is a sample, not a bound",
            "show /proc/sys/kernel to the container",
        ),
    }
}

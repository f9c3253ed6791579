// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device interrupts on the CPUs that are measured by default.

use super::Verdict;
use doorbell_results::machine::Machine;
use doorbell_results::machine::cpu_list::CpuList;

pub(super) const SOURCE: &str = "kernel Documentation/core-api/irq/irq-affinity.rst; proc_interrupts(5)";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let Some(count) = machine.interrupts.count else {
        return Verdict::note(
            "unknown (/proc/interrupts is hidden)",
            "interrupts taken during a trial cannot be counted",
            "show /proc/interrupts to the container",
        );
    };
    let measured: CpuList = machine.topology.two_cores().into_iter().flatten().collect();
    let takers = machine.interrupts.directed_to.clone().unwrap_or_else(|| machine.interrupts.cpus.clone());
    let shared = takers.and(&measured);
    let seen = format!("devices interrupt {} ({count} since boot)", takers.named());
    if takers.is_empty() {
        return Verdict::ok("no device has interrupted yet");
    }
    if shared.is_empty() {
        return Verdict::ok(format!("{seen}, not the pair measured by default ({measured})"));
    }
    Verdict::note(
        seen,
        format!(
            "where they are measured by default ({}), sides stop for them: a few samples are \
             longer by the handler's time",
            shared.named()
        ),
        "direct them elsewhere (/proc/irq/N/smp_affinity_list, irqaffinity=, irqbalance's banned CPUs), or \
         choose other CPUs with --cpus",
    )
}

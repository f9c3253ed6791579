// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many CPUs there are to measure on, and whether they are alike.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/admin-guide/cputopology.rst; sched_setaffinity(2)";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let topology = &machine.topology;
    let usable = topology.usable.len();
    let mut seen = match topology.online.without(&topology.usable).len() {
        0 => format!("{usable} online, all usable"),
        _ => format!("{} online, {usable} usable ({})", topology.online.len(), topology.usable),
    };
    let mut kinds: Vec<&str> = topology.cpus.iter().filter_map(|cpu| cpu.kind.as_deref()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if !kinds.is_empty() {
        seen += &format!(", of kinds {}", kinds.join(", "));
    }
    if usable == 0 {
        return Verdict::unfit(
            seen,
            "nothing can be pinned",
            "show /proc or /sys to the container, or widen its cpuset",
        );
    }
    if usable == 1 {
        return Verdict::warn(
            seen,
            "only wake-ups on one core can be measured, and everything else on the machine runs there too",
            "give the process two CPUs or more (taskset, docker run --cpuset-cpus, a larger machine)",
        );
    }
    if topology.cpus.iter().all(|cpu| cpu.smt.is_none()) {
        return Verdict::note(
            seen,
            "the kernel does not show what CPUs share, so placements cannot be told apart",
            "show /sys/devices/system/cpu to the container, or name CPUs with --cpus",
        );
    }
    if kinds.len() > 1 {
        return Verdict::note(
            seen,
            "unpinned sides run on either kind, with different costs",
            "compare pinned placements; pairs are chosen within one kind where the machine allows",
        );
    }
    Verdict::ok(seen)
}

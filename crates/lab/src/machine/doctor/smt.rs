// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware threads that share a core.

use super::Verdict;
use crate::machine::Machine;
use crate::machine::line_hop::LineHop;
use crate::machine::topology::Relation;

pub(super) const SOURCE: &str = "kernel Documentation/ABI/testing/sysfs-devices-system-cpu, smt/control";

/// A shorter hop is one between hardware threads of one core, nanoseconds. The tables of core-to-core-latency
/// (<https://github.com/nviennot/core-to-core-latency>) have medians of 4.3 to 10 ns between those of eighteen x86 processors, and
/// of 16 ns and more between cores of every processor; this lies between the two. Threads of other architectures take longer and are
/// not told from cores by it.
const SIBLINGS_BELOW_NS: f64 = 13.0;

/// The shortest hop between CPUs that are not shown as siblings, if only siblings are that near.
fn hidden(machine: &Machine) -> Option<&LineHop> {
    let apart = |hop: &&LineHop| {
        let [first, second] = hop.cpus;
        !matches!(machine.topology.relation(first, second), Relation::SameCore | Relation::SmtSibling)
    };
    let near = machine.line_hops.iter().filter(apart).filter(|hop| hop.fastest_ns < SIBLINGS_BELOW_NS);
    near.min_by(|one, other| one.fastest_ns.total_cmp(&other.fastest_ns))
}

pub(super) fn examine(machine: &Machine) -> Verdict {
    let topology = &machine.topology;
    if let Some(LineHop { cpus: [first, second], fastest_ns }) = hidden(machine) {
        return Verdict::warn(
            format!(
                "siblings may be hidden: a hop of {fastest_ns:.1} ns between CPUs {first} and {second}, which claim separate cores"
            ),
            "two sides there share one core: who spins slows the other down, a wake needs no interrupt of another core, and where the \
             host moves them apart figures change severalfold",
            "have the host pin virtual CPUs to whole cores, or show its topology to the guest; else compare only blocks whose \
             cache-line-hop floors agree",
        );
    }
    let control =
        topology.smt_control.as_deref().map(|control| format!(" (control: {control})")).unwrap_or_default();
    let knows = topology.cpus.iter().any(|cpu| cpu.smt.is_some());
    let siblings = topology.cpus.iter().any(|cpu| cpu.smt.as_ref().is_some_and(|smt| smt.len() > 1));
    if siblings {
        let pair = topology.pair_for(Relation::SmtSibling);
        let pair = pair.map(|[a, b]| format!(", such as {a} and {b}")).unwrap_or_default();
        return Verdict::note(
            format!("siblings share cores{pair}{control}"),
            "work on the sibling of a measured CPU slows it down and is not seen as load on the CPU itself",
            "keep the siblings of measured CPUs idle, or as root: echo off > \
             /sys/devices/system/cpu/smt/control",
        );
    }
    if machine.virtualisation.guest && knows {
        return Verdict::note(
            format!("no siblings shown{control}"),
            "a virtual machine may be shown whole cores that are hardware threads on the host",
            "ask the provider whether a virtual CPU is a core or a thread",
        );
    }
    if knows {
        Verdict::ok(format!("no siblings online{control}"))
    } else {
        Verdict::ok(format!("not told by the kernel{control}"))
    }
}

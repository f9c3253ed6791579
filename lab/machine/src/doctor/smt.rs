// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware threads that share a core.

use super::Verdict;
use doorbell_results::machine::Machine;
use doorbell_results::machine::line_hop::LineHop;
use doorbell_results::machine::topology::Relation;
use doorbell_results::written::time_ns;

pub(super) const SOURCE: &str = "kernel Documentation/ABI/testing/sysfs-devices-system-cpu, smt/control";

/// A shorter hop looks like one between hardware threads of one core, nanoseconds: a rule of thumb.
/// The tables of core-to-core-latency (<https://github.com/nviennot/core-to-core-latency>) have medians of 4.3 to 10 ns between those of eighteen
/// x86 processors, and of 16 ns and more between cores of every processor; this lies between the
/// two. Theirs are of a compare-and-swap on one line, and ours of a store and a load on each of
/// two, which no table is of. Threads of other architectures take longer and are not told from
/// cores by it.
const SIBLINGS_BELOW_NS: f64 = 13.0;

/// The CPUs with the shortest hop, and its nanoseconds, that are not shown as siblings, if only
/// siblings are that near. The middle batch counts: one fast batch may be chance, or of a moment at
/// which the host had both elsewhere.
fn hidden(machine: &Machine) -> Option<([u32; 2], f64)> {
    let apart = |[first, second]: [u32; 2]| {
        !matches!(machine.topology.relation(first, second), Relation::SameCore | Relation::SmtSibling)
    };
    let hops = machine.line_hops.iter().filter_map(|hop: &LineHop| Some((hop.cpus, hop.median_ns?)));
    let near = hops.filter(|(cpus, median_ns)| apart(*cpus) && *median_ns < SIBLINGS_BELOW_NS);
    near.min_by(|one, other| one.1.total_cmp(&other.1))
}

pub(super) fn examine(machine: &Machine) -> Verdict {
    let topology = &machine.topology;
    if let Some(([first, second], median_ns)) = hidden(machine) {
        return Verdict::warn(
            format!(
                "siblings may be hidden: a median hop of {} between CPUs {first} and {second}, \
                 which claim separate cores (a rule of thumb: cores of x86 are {SIBLINGS_BELOW_NS} \
                 ns and more apart)",
                time_ns(median_ns)
            ),
            "two sides there would share one core: who spins slows the other down, a wake-up needs \
             no interrupt of another core, and where the host moves them apart figures change \
             severalfold",
            "have the host pin virtual CPUs to whole cores, or show its topology to the guest; \
             else compare only blocks whose cache-line-hop primitive costs agree",
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware threads that share a core.

use super::Verdict;
use crate::machine::Machine;
use crate::machine::topology::Relation;

pub(super) const SOURCE: &str = "kernel Documentation/ABI/testing/sysfs-devices-system-cpu, smt/control";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let topology = &machine.topology;
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

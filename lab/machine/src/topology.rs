// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs there are, which of them this process may use, and what any two of them share.

use super::cgroup;
use super::root::{Root, field};
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::topology::*;

const CPU: &str = "sys/devices/system/cpu";

const NODE: &str = "sys/devices/system/node";

/// Reads it from a machine's files. `affinity` is what the kernel said when asked, for a root
/// without `/proc/self/status`.
pub fn read(root: &Root, affinity: Option<CpuList>) -> Topology {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let affinity = root
        .text("proc/self/status")
        .and_then(|status| field(&status, "Cpus_allowed_list")?.parse().ok())
        .filter(|list: &CpuList| !list.is_empty())
        .or(affinity);
    let online = online(root, &cpuinfo).or_else(|| affinity.clone()).unwrap_or_default();
    let cpuset = cgroup::cpuset(root);
    let mut usable = online.clone();
    for allowed in [&affinity, &cpuset].into_iter().flatten() {
        usable = usable.and(allowed);
    }
    let nodes = nodes(root);
    let cpus = online.iter().map(|id| cpu(root, &cpuinfo, &nodes, id)).collect();
    let mut topology = Topology {
        present: list(root, "present"),
        affinity,
        cpuset,
        usable,
        isolated: list(root, "isolated"),
        smt_control: root.word(format!("{CPU}/smt/control")),
        cpus,
        nodes,
        online,
    };
    forget_the_only_kind(&mut topology);
    topology
}

/// A kind says something only where there are two.
fn forget_the_only_kind(topology: &mut Topology) {
    let first = topology.cpus.first().and_then(|cpu| cpu.kind.clone());
    if topology.cpus.iter().all(|cpu| cpu.kind == first) {
        topology.cpus.iter_mut().for_each(|cpu| cpu.kind = None);
    }
}

fn list(root: &Root, name: &str) -> Option<CpuList> {
    root.value(format!("{CPU}/{name}"))
}

/// CPUs that run: by sysfs, else by the lines of `/proc/stat`, else by `/proc/cpuinfo`.
fn online(root: &Root, cpuinfo: &str) -> Option<CpuList> {
    let by_stat = || {
        let text = root.text("proc/stat")?;
        let lines = text.lines().filter_map(|line| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok());
        Some(lines.filter(|cpu| *cpu < 8192).collect())
    };
    let by_cpuinfo = || {
        let lines = cpuinfo.lines().filter(|line| line.starts_with("processor"));
        let numbers = lines.filter_map(|line| line.split(':').nth(1)?.trim().parse().ok());
        Some(numbers.filter(|cpu| *cpu < 8192).collect())
    };
    let known = |list: &CpuList| !list.is_empty();
    list(root, "online")
        .filter(known)
        .or_else(|| by_stat().filter(known))
        .or_else(|| by_cpuinfo().filter(known))
}

fn nodes(root: &Root) -> Vec<Node> {
    let node = |id: u32| {
        let folder = format!("{NODE}/node{id}");
        let distances = root.text(format!("{folder}/distance")).unwrap_or_default();
        Some(Node {
            id,
            cpus: root.value(format!("{folder}/cpulist"))?,
            distances: distances.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        })
    };
    root.numbered(NODE, "node").into_iter().filter_map(node).collect()
}

fn cpu(root: &Root, cpuinfo: &str, nodes: &[Node], id: u32) -> Cpu {
    let folder = format!("{CPU}/cpu{id}");
    let number =
        |name: &str| root.value::<i32>(format!("{folder}/topology/{name}")).filter(|number| *number >= 0);
    let shared = |name: &str| {
        root.value::<CpuList>(format!("{folder}/topology/{name}")).filter(|list| list.contains(id))
    };
    let mut cpu = Cpu {
        id,
        package: number("physical_package_id"),
        die: number("die_id"),
        core: number("core_id"),
        node: nodes.iter().find(|node| node.cpus.contains(id)).map(|node| node.id),
        smt: shared("core_cpus_list").or_else(|| shared("thread_siblings_list")),
        cluster: shared("cluster_cpus_list"),
        kind: kind(root, &folder, id),
        ..Cpu::default()
    };
    for index in root.numbered(format!("{folder}/cache"), "index") {
        let cache = format!("{folder}/cache/index{index}");
        let sharers =
            || root.value::<CpuList>(format!("{cache}/shared_cpu_list")).filter(|list| list.contains(id));
        match root.value::<u32>(format!("{cache}/level")) {
            Some(2) => cpu.l2 = sharers(),
            Some(3) => cpu.l3 = sharers(),
            _ => {}
        }
    }
    if cpu.smt.is_none() {
        ask_cpuinfo(cpuinfo, &mut cpu);
    }
    cpu
}

fn kind(root: &Root, folder: &str, id: u32) -> Option<String> {
    let listed = |kind: &str| root.value::<CpuList>(format!("sys/devices/cpu_{kind}/cpus"));
    ["core", "atom"]
        .into_iter()
        .find(|kind| listed(kind).is_some_and(|cpus| cpus.contains(id)))
        .map(str::to_owned)
        .or_else(|| root.value::<u32>(format!("{folder}/cpu_capacity")).map(|capacity| capacity.to_string()))
}

/// Package, core and siblings from `/proc/cpuinfo`, which x86 kernels print where sysfs is hidden.
fn ask_cpuinfo(cpuinfo: &str, cpu: &mut Cpu) {
    let entries: Vec<(u32, i32, i32)> = cpuinfo
        .split("\n\n")
        .filter_map(|entry| {
            let number = |key: &str| field(entry, key)?.parse::<i32>().ok();
            let id = field(entry.trim_start(), "processor")?.parse().ok()?;
            Some((id, number("physical id")?, number("core id")?))
        })
        .collect();
    if let Some((_, package, core)) = entries.iter().find(|(id, ..)| *id == cpu.id) {
        cpu.package = Some(*package);
        cpu.core = Some(*core);
        let siblings = entries.iter().filter(|entry| (entry.1, entry.2) == (*package, *core));
        cpu.smt = Some(siblings.map(|entry| entry.0).collect());
    }
}

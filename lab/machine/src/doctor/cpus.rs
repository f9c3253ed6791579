// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs there are to measure on, and what else comes to them.

use super::{Family, Verdict};
use doorbell_results::about::About;
use doorbell_results::machine::Machine;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::line_hop::LineHop;
use doorbell_results::machine::topology::Relation;
use doorbell_results::written::time_ns;

pub(super) const CPUS: Family = Family {
    about: About {
        name: "cpus",
        what: "How many CPUs there are to measure on, and whether they are the same.",
        taken: "The kernel's topology, this process's affinity and its cpuset.",
        misleads: "A virtual machine shows what its host lets it show.",
    },
    source: "kernel Documentation/admin-guide/cputopology.rst; sched_setaffinity(2)",
    examine: cpus,
};

fn cpus(machine: &Machine) -> Verdict {
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

pub(super) const SMT: Family = Family {
    about: About {
        name: "smt",
        what: "Whether hardware threads share a core.",
        taken: "The sibling lists and smt/control in /sys, and how fast a cache line moves \
            between CPUs that are said to be of two cores.",
        misleads: "A virtual machine may be shown whole cores that are threads on the host: \
            what the line shows is where they were just now, and a host may move them.",
    },
    source: "kernel Documentation/ABI/testing/sysfs-devices-system-cpu, smt/control",
    examine: smt,
};

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

fn smt(machine: &Machine) -> Verdict {
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

pub(super) const ISOLATION: Family = Family {
    about: About {
        name: "isolation",
        what: "Whether some CPUs are kept free of other tasks and of the tick.",
        taken: "isolcpus=, nohz_full= and isolated cpuset partitions, as /sys tells them.",
        misleads: "Interrupts and some kernel threads come all the same.",
    },
    source: "kernel Documentation/admin-guide/kernel-parameters.txt, isolcpus, \
                                 nohz_full; Documentation/timers/no_hz.rst",
    examine: isolation,
};

fn isolation(machine: &Machine) -> Verdict {
    let topology = &machine.topology;
    let Some(isolated) = topology.isolated.clone() else { return Verdict::ok("not told by the kernel") };
    let tickless = machine.kernel.nohz_full.clone().unwrap_or_default();
    if isolated.is_empty() {
        return Verdict::note(
            tick("no isolated CPUs", &tickless),
            "kernel threads, timers and other programs may run on measured CPUs: the far tail is \
             partly theirs",
            "boot with isolcpus=… nohz_full=…, or make a cpuset partition of type isolated",
        );
    }
    let seen = tick(&format!("isolated: {}", isolated.named()), &tickless);
    if isolated.and(&topology.usable).is_empty() {
        return Verdict::note(
            format!("{seen}, none of them usable by this process"),
            "measured CPUs are the ones everything else runs on",
            format!("start with: taskset -c {isolated} doorbell …"),
        );
    }
    Verdict::ok(seen)
}

fn tick(seen: &str, tickless: &CpuList) -> String {
    if tickless.is_empty() { seen.to_owned() } else { format!("{seen}, no tick on {tickless}") }
}

pub(super) const INTERRUPTS: Family = Family {
    about: About {
        name: "interrupts",
        what: "Whether devices interrupt the CPUs that are measured by default.",
        taken: "/proc/interrupts and each interrupt's affinity.",
        misleads: "Where an interrupt may go is not where it goes next.",
    },
    source: "kernel Documentation/core-api/irq/irq-affinity.rst; proc_interrupts(5)",
    examine: interrupts,
};

fn interrupts(machine: &Machine) -> Verdict {
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

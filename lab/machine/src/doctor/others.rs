// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who else wants the CPUs, or rations them, and how this process is scheduled among them.

use super::{Family, Verdict};
use doorbell_results::about::About;
use doorbell_results::machine::Machine;
use doorbell_results::written::time_ns;

pub(super) const LOAD: Family = Family {
    about: About {
        name: "load",
        what: "What else runs: CPU time that went to other programs just before the run.",
        taken: "/proc/stat over the last fifth of a second, and the load average.",
        misleads: "It is a moment before the run; each trial is watched by itself as well (see \
            interference).",
    },
    source: "proc_stat(5); kernel Documentation/accounting/psi.rst",
    examine: load,
};

/// As much as a trial may meet before it counts as interference (the
/// bound of the trials' own environment), per pair.
const BUSY_SHARE: f64 = 0.05;

/// With less than half a CPU left over, no side of a trial runs when it is woken.
const FREE_SHARE: f64 = 0.5;

fn load(machine: &Machine) -> Verdict {
    let Some((load, share)) = machine.load.as_ref().and_then(|load| Some((load, load.foreign_share?))) else {
        return Verdict::note(
            "unknown (/proc/stat is hidden)",
            "trials with interference by other programs cannot be told from others",
            "show /proc/stat to the container",
        );
    };
    let resolution = load.foreign_resolution.or(load.share_resolution).unwrap_or(0.0);
    let usable = load.cpus.len() as f64;
    let average = load.load_average.map(|average| format!(", load average {average:.2}")).unwrap_or_default();
    let busiest = load.busiest.as_ref().map(|name| format!(", most of it '{name}'")).unwrap_or_default();
    let seen = format!(
        "other programs use {:.0} ± {:.0} % of one CPU, of {usable} CPUs{busiest}{average}",
        share * 100.0,
        resolution * 100.0
    );
    let sure = share - resolution;
    if sure > usable - FREE_SHARE {
        return Verdict::unfit(
            seen,
            "no CPU is free: every wake-up waits for somebody else's time slice",
            "stop the other work, or wait until it is done",
        );
    }
    if sure > BUSY_SHARE * (usable / 2.0).max(1.0) {
        return Verdict::warn(
            seen,
            "wake-ups meet other programs on their CPU; such trials are repeated, then marked with \
             interference",
            "stop the other work, or measure on CPUs it does not use (--cpus)",
        );
    }
    Verdict::ok(seen)
}

pub(super) const STEAL: Family = Family {
    about: About {
        name: "steal",
        what: "Time that the hypervisor gave to somebody else.",
        taken: "The steal column of /proc/stat, since boot and just now.",
        misleads: "Not every hypervisor tells: none reported is not none taken.",
    },
    source: "proc_stat(5), steal; kernel Documentation/virt/kvm/x86/msr.rst, MSR_KVM_STEAL_TIME",
    examine: steal,
};

/// A hundredth of the time of a CPU, for it touches the 99th percentile.
const SHARE: f64 = 0.01;

fn steal(machine: &Machine) -> Verdict {
    let now = machine.load.as_ref().and_then(|load| {
        let surely = load.steal_share? - load.share_resolution.unwrap_or(0.0);
        // As much as of each CPU that was looked at, all together being a share of one.
        Some((load.steal_share?, surely > SHARE * load.cpus.len().max(1) as f64))
    });
    let Some(since_boot) = machine.steal_share_since_boot else {
        return Verdict::note(
            "unknown (/proc/stat is hidden)",
            "time that the hypervisor takes cannot be told from a slow wake-up",
            "show /proc/stat to the container",
        );
    };
    let recently =
        now.map(|(share, _)| format!(", {:.1} % of one CPU just now", share * 100.0)).unwrap_or_default();
    let seen = format!("{:.2} % of all CPU time since boot{recently}", since_boot * 100.0);
    if now.is_some_and(|(_, surely)| surely) || since_boot > SHARE {
        return Verdict::warn(
            seen,
            "a wake-up that falls into steal time is longer by up to the host's time slice: the tail is the \
             host's",
            "measure when the host is less busy, or on a machine type with dedicated CPUs",
        );
    }
    if machine.virtualisation.guest && since_boot == 0.0 {
        return Verdict::note(
            format!("{seen} (in a virtual machine)"),
            "none was reported: either none was taken, or the hypervisor does not tell",
            "where the host can be asked, compare with its own accounting",
        );
    }
    Verdict::ok(seen)
}

pub(super) const QUOTA: Family = Family {
    about: About {
        name: "quota",
        what: "The CPU quota of this process's control group, or of the tightest above it.",
        taken: "cpu.max or cpu.cfs_quota_us, and how often the groups were throttled, of each \
            group from this process's to the top.",
        misleads: "A container may be shown none of the groups above its own.",
    },
    source: "kernel Documentation/admin-guide/cgroup-v2.rst, cpu.max; Documentation/scheduler/sched-bwc.rst",
    examine: quota,
};

/// Two sides that both spin, and the command.
const ENOUGH: f64 = 2.5;

fn quota(machine: &Machine) -> Verdict {
    let cgroup = &machine.cgroup;
    let throttled = match (cgroup.throttled_periods, cgroup.throttled_ns) {
        (Some(periods), Some(ns)) if periods > 0 => {
            format!(", was throttled in {periods} periods for {}", time_ns(ns as f64))
        }
        _ => String::new(),
    };
    let Some(quota) = cgroup.cpu_quota else {
        return match cgroup.version {
            Some(version) => Verdict::ok(format!("none (cgroup v{version}){throttled}")),
            None => Verdict::ok("no CPU controller is visible"),
        };
    };
    let seen = format!("{quota:.2} CPUs{throttled}");
    if quota < ENOUGH {
        return Verdict::warn(
            seen,
            "sides that use up the quota stand still until its next period, 100 ms by default: a false tail",
            "lift the limit for the measurement (cpu.max, docker run --cpus, Kubernetes: no CPU limit or \
             static CPU manager)",
        );
    }
    Verdict::note(
        seen,
        "enough for two sides; load generators beside them may use it up",
        "lift the limit before measuring under load",
    )
}

pub(super) const SCHEDULING: Family = Family {
    about: About {
        name: "scheduling",
        what: "How this process is scheduled, and what else of it the sides of a trial \
            inherit: policy, nice value, timer slack, session group, memory policy, filters of \
            system calls.",
        taken: "/proc/self: stat, timerslack_ns, autogroup, numa_maps and status. A run first \
            sets policy, nice value and timer slack back to the usual ones, where this user \
            may.",
        misleads: "`doorbell doctor` sets nothing, and so may find what a run would undo.",
    },
    source: "sched(7); PR_SET_TIMERSLACK(2const); set_mempolicy(2)",
    examine: scheduling,
};

fn scheduling(machine: &Machine) -> Verdict {
    let scheduling = &machine.scheduling;
    let otherwise = scheduling.otherwise();
    if !otherwise.is_empty() {
        return Verdict::warn(
            otherwise.join(", "),
            "the sides inherit it: their wake-ups are not those of a program that was started as \
             usual, and are compared with none of it",
            "start it without chrt, nice, numactl or prctl, or as a user who may undo them: a run \
             sets policy, nice value and timer slack back where it may",
        );
    }
    match (&scheduling.policy, scheduling.call_filters) {
        (None, _) => Verdict::note(
            "unknown (/proc/self is hidden)",
            "what the sides inherit cannot be told",
            "show /proc to the container",
        ),
        (_, Some(filters @ 1..)) => Verdict::note(
            format!("as usual, and every system call passes {filters} filters (seccomp)"),
            "each wake-up that enters the kernel pays for them",
            "measure outside of the container (docker run --security-opt seccomp=unconfined), if \
             those who wait run there",
        ),
        _ => Verdict::ok("as usual: other, nice 0, timer slack 50 µs"),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel does at each entry and switch, what it allows, and what it tells.

use super::{Family, Severity, Verdict};
use doorbell_results::about::About;
use doorbell_results::machine::Machine;

pub(super) const PREEMPTION: Family = Family {
    about: About {
        name: "preemption",
        what: "When the kernel lets a woken task take the CPU from what it is doing.",
        taken: "The preemption model in /proc or /sys, or the kernel's version string.",
        misleads: "Only a real-time kernel makes the longest time a bound; here it is a sample.",
    },
    source: "kernel/Kconfig.preempt; kernel Documentation/core-api/real-time/",
    examine: preemption,
};

fn preemption(machine: &Machine) -> Verdict {
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

pub(super) const MITIGATIONS: Family = Family {
    about: About {
        name: "mitigations",
        what: "What the kernel does against faults of the CPU at each entry and each switch.",
        taken: "/sys/devices/system/cpu/vulnerabilities and the kernel's command line.",
        misleads: "Their cost is in every figure and not told apart.",
    },
    source: "kernel Documentation/admin-guide/hw-vuln/",
    examine: mitigations,
};

fn mitigations(machine: &Machine) -> Verdict {
    let all = &machine.processor.mitigations;
    if all.is_empty() {
        return Verdict::ok("not told by the kernel");
    }
    let with = |word: &str| -> Vec<&str> {
        all.iter().filter(|(_, state)| state.starts_with(word)).map(|(name, _)| name.as_str()).collect()
    };
    let (active, vulnerable) = (with("Mitigation"), with("Vulnerable"));
    let off = machine
        .kernel
        .parameter("mitigations")
        .is_some_and(|value| value.split(',').any(|word| word == "off"));
    if off {
        return Verdict::note(
            "off on the kernel's command line",
            "system calls and switches are cheaper than on a machine with the kernel's defaults",
            "carry these figures only to machines booted the same way",
        );
    }
    let mut seen = if active.is_empty() {
        "none active".to_owned()
    } else {
        format!("active for {}", active.join(", "))
    };
    if !vulnerable.is_empty() {
        seen += &format!("; none for {}", vulnerable.join(", "));
    }
    if active.is_empty() {
        return Verdict::ok(seen);
    }
    Verdict::note(
        seen,
        "each system call and switch pays for them; CPUs that need others differ by that much",
        "leave them on; compare only machines whose lists agree",
    )
}

pub(super) const LIMITS: Family = Family {
    about: About {
        name: "limits",
        what: "Limits that some mechanism or experiment will meet.",
        taken: "getrlimit, /proc/sys and the control group, against what 2000 waiters need.",
        misleads: "Pairs of sides need far less than that.",
    },
    source: "getrlimit(2); proc_sys_kernel(5); mq_overview(7); shm_overview(7)",
    examine: limits,
};

/// What a fan-out to 2000 waiters needs: for each an object, and for some mechanisms two
/// descriptors; some to spare.
const WAITERS: u64 = 2000;
const DESCRIPTORS: u64 = 2 * WAITERS + 200;
const TASKS: u64 = WAITERS + 200;
/// Below this even a pair of sides with an event loop each cannot be
/// opened beside the shell's own descriptors.
const FEWEST_DESCRIPTORS: u64 = 64;
/// What a trial maps, its sides' histograms among it, with room for a large message.
const SHM: u64 = 64 << 20;

fn limits(machine: &Machine) -> Verdict {
    if machine.permissions.own_program == Some(false) {
        return Verdict::unfit(
            "/proc/self/exe cannot be executed",
            "not one trial can be started: each is a process of its own, of this very program",
            "mount /proc (docker run without --security-opt systempaths, mount -t proc proc /proc)",
        );
    }
    let limits = &machine.limits;
    let mut tight = Vec::new();
    let mut below = |value: Option<u64>, need: u64, what: &str, cure: &str| {
        if let Some(value) = value.filter(|value| *value < need) {
            tight.push((format!("{what} {value}"), cure.to_owned()));
        }
    };
    let descriptors = limits.open_files.map(|limit| limit.soft);
    below(descriptors, DESCRIPTORS, "descriptors", "ulimit -n 8192");
    below(limits.tasks.map(|limit| limit.soft), TASKS, "tasks of the user", "ulimit -u 4096");
    below(machine.cgroup.pids, TASKS, "tasks of the control group", "docker run --pids-limit 4096");
    below(
        limits.semaphore_sets,
        WAITERS,
        "System V semaphore sets",
        "sysctl kernel.sem='32000 1024000000 500 32000'",
    );
    below(limits.system_v_queues, WAITERS, "System V queues", "sysctl kernel.msgmni=32000");
    below(limits.posix_queues, WAITERS, "POSIX queues", "sysctl fs.mqueue.queues_max=4096");
    below(limits.shm_bytes, SHM, "bytes of /dev/shm", "docker run --shm-size 1g");
    let may_rise = machine.permissions.nice == Some(true)
        || limits.realtime_priority.is_some_and(|limit| limit.soft >= 50);
    if !may_rise {
        tight.push(("real-time priority not allowed".to_owned(), "run as root, or ulimit -r 50".to_owned()));
    }
    if tight.is_empty() {
        return Verdict::ok("enough for 2000 waiters of any kind");
    }
    let (seen, cures): (Vec<String>, Vec<String>) = tight.into_iter().unzip();
    let hopeless = descriptors.is_some_and(|descriptors| descriptors < FEWEST_DESCRIPTORS);
    Verdict::bad(
        if hopeless { Severity::Unfit } else { Severity::Note },
        seen.join(", "),
        if hopeless {
            "most mechanisms cannot be opened at all"
        } else {
            "experiments with many waiters, or with SCHED_FIFO, meet these limits and say so; pairs are not \
             affected"
        },
        cures.join("; "),
    )
}

pub(super) const USER_INTERRUPTS: Family = Family {
    about: About {
        name: "user-interrupts",
        what: "Whether the CPU has user interrupts, and whether the kernel gives them to programs.",
        taken: "CPUID leaf 7, and the flags the kernel lists.",
        misleads: "A hypervisor may hide what the CPU has.",
    },
    source: "Intel SDM vol. 3A, User Interrupts; doorbell's book, user-interrupts-without-the-hardware.md",
    examine: user_interrupts,
};

fn user_interrupts(machine: &Machine) -> Verdict {
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

pub(super) const TRACING: Family = Family {
    about: About {
        name: "tracing",
        what: "Whether the kernel's own counters and trace events can be read beside the clock.",
        taken: "perf_event_paranoid, the capabilities of this process, tracefs.",
        misleads: "A counter that may be opened can still be absent on this CPU.",
    },
    source: "kernel Documentation/admin-guide/perf-security.rst; perf_event_open(2)",
    examine: tracing,
};

/// From this level on, counting what the kernel does for one's own process is refused.
const OWN_USER_CODE_ONLY: i64 = 2;

fn tracing(machine: &Machine) -> Verdict {
    let permissions = &machine.permissions;
    let perfmon = permissions.perfmon == Some(true);
    let level = machine.kernel.perf_event_paranoid;
    let software = perfmon || level.is_some_and(|level| level < OWN_USER_CODE_ONLY);
    let level = level.map_or("hidden".to_owned(), |level| level.to_string());
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let seen = format!(
        "perf_event_paranoid {level}, hardware counters {}, trace events {}",
        yes_no(permissions.hardware_counters),
        yes_no(permissions.tracefs)
    );
    if software && permissions.hardware_counters && permissions.tracefs {
        return Verdict::ok(seen);
    }
    let (effect, cure) = match (software, permissions.hardware_counters) {
        (false, _) => (
            "switches and migrations come from /proc alone; interrupts and wake-ups by cause are not counted",
            "as root: sysctl kernel.perf_event_paranoid=1, or give the program CAP_PERFMON",
        ),
        (true, false) => (
            "cycles and instructions per wake-up are unknown",
            "a virtual machine needs a virtual performance monitoring unit from its host",
        ),
        (true, true) => (
            "single wake-ups cannot be traced to their cause",
            "as root: mount -t tracefs nodev /sys/kernel/tracing",
        ),
    };
    Verdict::note(seen, effect, cure)
}

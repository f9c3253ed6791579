// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is this machine fit to measure? One file per family of findings,
//! each a pure function of the [`Machine`].
//!
//! A finding changes nothing about the machine: the lab measures it as it was found, and says what
//! that does to the figures. Only what would make figures false is [`Severity::Unfit`].

use super::Machine;
use doorbell_results::machine::doctor::*;

use doorbell_results::about::About;

mod clock_source;

mod cpus;

mod dma_latency;

mod governor;

mod idle_states;

mod interrupts;

mod isolation;

mod limits;

mod load;

mod mitigations;

mod preemption;

mod quota;

mod scheduling;

mod smt;
mod speed;

mod steal;

mod tracing;

mod tsc;

mod turbo;

mod user_interrupts;

mod virtualisation;

/// What a family says: everything of a [`Finding`] but its name and source.
#[derive(Debug)]
struct Verdict {
    severity: Severity,
    seen: String,
    effect: String,
    cure: String,
}

impl Verdict {
    fn ok(seen: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, seen: seen.into(), effect: String::new(), cure: String::new() }
    }

    fn bad(
        severity: Severity,
        seen: impl Into<String>,
        effect: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self { severity, seen: seen.into(), effect: effect.into(), cure: cure.into() }
    }

    fn note(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Note, seen, effect, cure)
    }

    fn warn(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Warn, seen, effect, cure)
    }

    fn unfit(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Unfit, seen, effect, cure)
    }
}

struct Family {
    about: About,
    source: &'static str,
    examine: fn(&Machine) -> Verdict,
}

/// Every family, in the order of the report: clocks first, for
/// without them nothing can be said. The one list to extend.
const FAMILIES: [Family; 21] = [
    Family {
        about: About {
            name: "clock-source",
            what: "The clock source the kernel uses: what a reading of the clock costs, and \
                whether the processor's counter may be trusted.",
            taken: "/sys/devices/system/clocksource.",
            misleads: "The kernel may have given the counter up for a reason that only its log tells.",
        },
        source: clock_source::SOURCE,
        examine: clock_source::examine,
    },
    Family {
        about: About {
            name: "tsc",
            what: "The clock of the run as it was measured: its grid, the cost of a reading, the \
                skew between CPUs, its drift.",
            taken: "Readings in a row for grid and cost, readings passed between CPUs for the \
                skew, the monotonic clock for the drift.",
            misleads: "The skew is a bound from round trips: it cannot be told finer than half of one.",
        },
        source: tsc::SOURCE,
        examine: tsc::examine,
    },
    Family {
        about: About {
            name: "speed",
            what: "How fast a fixed piece of work is from one moment to the next, and so what \
                difference between two things can be shown here.",
            taken: "A chain of 200 multiplications, timed over and over for 80 ms: the groups of \
                the times, and the spread of the medians of 5 ms each. The difference is that of \
                two things with ten trials each, in 95 of 100 runs.",
            misleads: "80 ms are a moment, and one CPU is one. What takes turns in slices is told \
                apart much finer.",
        },
        source: speed::SOURCE,
        examine: speed::examine,
    },
    Family {
        about: About {
            name: "cpus",
            what: "How many CPUs there are to measure on, and whether they are the same.",
            taken: "The kernel's topology, this process's affinity and its cpuset.",
            misleads: "A virtual machine shows what its host lets it show.",
        },
        source: cpus::SOURCE,
        examine: cpus::examine,
    },
    Family {
        about: About {
            name: "load",
            what: "What else runs: CPU time that went to other programs just before the run.",
            taken: "/proc/stat over the last fifth of a second, and the load average.",
            misleads: "It is a moment before the run; each trial is watched by itself as well (see \
                interference).",
        },
        source: load::SOURCE,
        examine: load::examine,
    },
    Family {
        about: About {
            name: "steal",
            what: "Time that the hypervisor gave to somebody else.",
            taken: "The steal column of /proc/stat, since boot and just now.",
            misleads: "Not every hypervisor tells: none reported is not none taken.",
        },
        source: steal::SOURCE,
        examine: steal::examine,
    },
    Family {
        about: About {
            name: "quota",
            what: "The CPU quota of this process's control group, or of the tightest above it.",
            taken: "cpu.max or cpu.cfs_quota_us, and how often the groups were throttled, of each \
                group from this process's to the top.",
            misleads: "A container may be shown none of the groups above its own.",
        },
        source: quota::SOURCE,
        examine: quota::examine,
    },
    Family {
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
        source: scheduling::SOURCE,
        examine: scheduling::examine,
    },
    Family {
        about: About {
            name: "virtualisation",
            what: "Whether this is a virtual machine, an emulator or a container.",
            taken: "CPUID, the firmware's names, /proc and well-known files.",
            misleads: "A hypervisor may hide itself.",
        },
        source: virtualisation::SOURCE,
        examine: virtualisation::examine,
    },
    Family {
        about: About {
            name: "governor",
            what: "Who sets the frequency of the CPUs, and by which rule.",
            taken: "cpufreq in /sys.",
            misleads: "Where the kernel sets none, the firmware or the host does, unseen.",
        },
        source: governor::SOURCE,
        examine: governor::examine,
    },
    Family {
        about: About {
            name: "turbo",
            what: "Whether frequencies above the nominal one are taken while heat and neighbours allow.",
            taken: "intel_pstate/no_turbo or cpufreq/boost in /sys.",
            misleads: "What frequency a trial really had is not told.",
        },
        source: turbo::SOURCE,
        examine: turbo::examine,
    },
    Family {
        about: About {
            name: "idle-states",
            what: "How deep an idle CPU sleeps, which a wake-up after a long gap has to wait for.",
            taken: "cpuidle in /sys: the deepest state that is allowed and its exit latency.",
            misleads: "The exit latency is what the firmware claims.",
        },
        source: idle_states::SOURCE,
        examine: idle_states::examine,
    },
    Family {
        about: About {
            name: "dma-latency",
            what: "Whether idle states could be held off for a measurement.",
            taken: "Whether this user may open /dev/cpu_dma_latency for writing; it is not opened.",
            misleads: "It is left alone: the machine is measured as it is.",
        },
        source: dma_latency::SOURCE,
        examine: dma_latency::examine,
    },
    Family {
        about: About {
            name: "smt",
            what: "Whether hardware threads share a core.",
            taken: "The sibling lists and smt/control in /sys, and how fast a cache line moves \
                between CPUs that are said to be of two cores.",
            misleads: "A virtual machine may be shown whole cores that are threads on the host: \
                what the line shows is where they were just now, and a host may move them.",
        },
        source: smt::SOURCE,
        examine: smt::examine,
    },
    Family {
        about: About {
            name: "isolation",
            what: "Whether some CPUs are kept free of other tasks and of the tick.",
            taken: "isolcpus=, nohz_full= and isolated cpuset partitions, as /sys tells them.",
            misleads: "Interrupts and some kernel threads come all the same.",
        },
        source: isolation::SOURCE,
        examine: isolation::examine,
    },
    Family {
        about: About {
            name: "interrupts",
            what: "Whether devices interrupt the CPUs that are measured by default.",
            taken: "/proc/interrupts and each interrupt's affinity.",
            misleads: "Where an interrupt may go is not where it goes next.",
        },
        source: interrupts::SOURCE,
        examine: interrupts::examine,
    },
    Family {
        about: About {
            name: "preemption",
            what: "When the kernel lets a woken task take the CPU from what it is doing.",
            taken: "The preemption model in /proc or /sys, or the kernel's version string.",
            misleads: "Only a real-time kernel makes the longest time a bound; here it is a sample.",
        },
        source: preemption::SOURCE,
        examine: preemption::examine,
    },
    Family {
        about: About {
            name: "mitigations",
            what: "What the kernel does against faults of the CPU at each entry and each switch.",
            taken: "/sys/devices/system/cpu/vulnerabilities and the kernel's command line.",
            misleads: "Their cost is in every figure and not told apart.",
        },
        source: mitigations::SOURCE,
        examine: mitigations::examine,
    },
    Family {
        about: About {
            name: "limits",
            what: "Limits that some mechanism or experiment will meet.",
            taken: "getrlimit, /proc/sys and the control group, against what 2000 waiters need.",
            misleads: "Pairs of sides need far less than that.",
        },
        source: limits::SOURCE,
        examine: limits::examine,
    },
    Family {
        about: About {
            name: "user-interrupts",
            what: "Whether the CPU has user interrupts, and whether the kernel gives them to programs.",
            taken: "CPUID leaf 7, and the flags the kernel lists.",
            misleads: "A hypervisor may hide what the CPU has.",
        },
        source: user_interrupts::SOURCE,
        examine: user_interrupts::examine,
    },
    Family {
        about: About {
            name: "tracing",
            what: "Whether the kernel's own counters and trace events can be read beside the clock.",
            taken: "perf_event_paranoid, the capabilities of this process, tracefs.",
            misleads: "A counter that may be opened can still be absent on this CPU.",
        },
        source: tracing::SOURCE,
        examine: tracing::examine,
    },
];

pub fn families() -> impl Iterator<Item = (About, &'static str)> {
    FAMILIES.iter().map(|family| (family.about, family.source))
}

/// Whether what stands in `/sys` is unknown rather than absent: every
/// kernel that shows it lists the present CPUs.
fn sysfs_is_hidden(machine: &Machine) -> bool {
    machine.topology.present.is_none()
}

/// What can be asked of systems that are not Linux.
const ELSEWHERE: [&str; 4] = ["tsc", "speed", "cpus", "virtualisation"];

/// One finding per family, those without fault among them.
pub fn examine(machine: &Machine) -> Vec<Finding> {
    FAMILIES
        .iter()
        .filter(|family| machine.kernel.system.is_none() || ELSEWHERE.contains(&family.about.name))
        .map(|family| {
            let Verdict { severity, seen, effect, cure } = (family.examine)(machine);
            let (name, source) = (family.about.name.to_owned(), family.source.to_owned());
            Finding { name, severity, seen, effect, cure, source }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::machine::scheduling::Scheduling;
    use doorbell_results::record::sample;

    #[test]
    fn every_finding_that_stands_beside_verdicts_is_one_that_the_doctor_has() {
        for name in BESIDE_VERDICTS {
            assert!(families().any(|(about, _)| about.name == name), "{name}");
        }
    }

    /// Under `chrt -i 0` and `nice -n 19` a run was recorded as `other`, without a warning.
    #[test]
    fn what_the_sides_inherit_that_no_plan_says_is_warned_of() {
        let mut machine = sample::machine();
        let found = |machine: &Machine| {
            examine(machine).into_iter().find(|finding| finding.name == "scheduling").unwrap()
        };
        machine.scheduling =
            Scheduling { policy: Some("idle".to_owned()), nice: Some(19), ..Scheduling::default() };
        let warned = found(&machine);
        assert_eq!((warned.severity, warned.seen.as_str()), (Severity::Warn, "policy idle, nice 19"));
        machine.scheduling = Scheduling { policy: Some("other".to_owned()), ..Scheduling::default() };
        assert_eq!(found(&machine).severity, Severity::Ok);
    }
}

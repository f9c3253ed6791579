// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the machine saves power, which a wake-up has to wait for.

use super::{Family, Verdict, sysfs_is_hidden};
use doorbell_results::about::About;
use doorbell_results::machine::Machine;

pub(super) const GOVERNOR: Family = Family {
    about: About {
        name: "governor",
        what: "Who sets the frequency of the CPUs, and by which rule.",
        taken: "cpufreq in /sys.",
        misleads: "Where the kernel sets none, the firmware or the host does, unseen.",
    },
    source: "kernel Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst",
    examine: governor,
};

const CURE: &str = "as root: cpupower frequency-set -g performance (or write it to \
                    /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor)";

fn governor(machine: &Machine) -> Verdict {
    let power = &machine.power;
    if power.governors.is_empty() && sysfs_is_hidden(machine) {
        return Verdict::ok("not told by the kernel");
    }
    if power.governors.is_empty() {
        return Verdict::note(
            "the kernel sets no frequency here",
            "the hypervisor or the firmware does: the frequency during a trial is unknown",
            if machine.virtualisation.guest {
                "set the performance governor on the host"
            } else {
                "let the firmware hand frequency control to the system, or choose its performance profile"
            },
        );
    }
    let list: Vec<String> = power.governors.iter().map(|(name, cpus)| format!("{name} on {cpus}")).collect();
    let mut seen = list.join(", ");
    if let Some(driver) = &power.frequency_driver {
        seen += &format!(" ({driver})");
    }
    if power.governors.keys().all(|name| name == "performance") {
        return Verdict::ok(seen);
    }
    let decided_by_cpu = power
        .frequency_driver
        .as_deref()
        .is_some_and(|driver| driver == "intel_pstate" || driver == "amd-pstate-epp");
    if decided_by_cpu {
        return Verdict::note(
            seen,
            "the CPU itself chooses its frequency, and starts low after a long sleep: short \
             wake-ups after long gaps are slower",
            CURE,
        );
    }
    Verdict::warn(
        seen,
        "a CPU that sleeps much is clocked down: wake-ups after long gaps are slower, and a busy \
         machine seems faster than an idle one",
        CURE,
    )
}

pub(super) const TURBO: Family = Family {
    about: About {
        name: "turbo",
        what: "Whether frequencies above the nominal one are taken while heat and neighbours allow.",
        taken: "intel_pstate/no_turbo or cpufreq/boost in /sys.",
        misleads: "What frequency a trial really had is not told.",
    },
    source: "kernel Documentation/admin-guide/pm/cpufreq.rst, boost; intel_pstate.rst, no_turbo",
    examine: turbo,
};

fn turbo(machine: &Machine) -> Verdict {
    match machine.power.turbo {
        Some(false) => Verdict::ok("off"),
        Some(true) => Verdict::note(
            "on",
            "the frequency depends on heat and on how many cores are awake: runs minutes apart may differ by \
             as much",
            "for the steadiest figures, as root: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or \
             echo 0 > /sys/devices/system/cpu/cpufreq/boost",
        ),
        None => Verdict::ok("not told by the kernel"),
    }
}

pub(super) const IDLE_STATES: Family = Family {
    about: About {
        name: "idle-states",
        what: "How deep an idle CPU sleeps, which a wake-up after a long gap has to wait for.",
        taken: "cpuidle in /sys: the deepest state that is allowed and its exit latency.",
        misleads: "The exit latency is what the firmware claims.",
    },
    source: "kernel Documentation/admin-guide/pm/cpuidle.rst",
    examine: idle_states,
};

/// An exit of 10 µs is longer than most wakes themselves.
const DEEP_US: u64 = 10;

fn idle_states(machine: &Machine) -> Verdict {
    let power = &machine.power;
    if machine.kernel.parameter("idle") == Some("poll") {
        return Verdict::note(
            "idle=poll on the kernel's command line",
            "idle CPUs spin: wake-ups are as short as they can be, and power and SMT siblings pay for it",
            "carry these figures only to machines booted the same way",
        );
    }
    if let Some((name, exit_us)) = power.deepest(&machine.topology.usable) {
        let driver = power.idle_driver.as_deref().unwrap_or("unknown driver");
        let governor = power.idle_governor.as_deref().unwrap_or("unknown governor");
        let seen = format!("deepest allowed {name}, {exit_us} µs to leave ({driver}, {governor})");
        if exit_us < DEEP_US {
            return Verdict::ok(seen);
        }
        return Verdict::note(
            seen,
            format!("a wake-up after a long gap is up to {exit_us} µs longer than one after a short gap"),
            "read figures by gap; to keep CPUs shallow, hold /dev/cpu_dma_latency open at 0, or cpupower \
             idle-set -D 10",
        );
    }
    match power.idle_driver.as_deref() {
        None if sysfs_is_hidden(machine) => Verdict::ok("not told by the kernel"),
        Some("none") | None if machine.virtualisation.guest => Verdict::note(
            "no idle driver: an idle virtual CPU halts at once",
            "each halt leaves the guest; how long the host polls before it lets the CPU go decides what a \
             wake-up after 0.1 ms or more costs, a factor of four was seen",
            "read figures by gap; on the host see kvm.halt_poll_ns, in the guest the haltpoll driver \
             (cpuidle_haltpoll)",
        ),
        Some("none") => Verdict::note(
            "no idle driver: an idle CPU executes a bare halt",
            "the firmware decides how deep it sleeps",
            "read figures by gap",
        ),
        Some(driver) => Verdict::ok(format!("{driver}, no states listed")),
        None => Verdict::ok("not told by the kernel"),
    }
}

pub(super) const DMA_LATENCY: Family = Family {
    about: About {
        name: "dma-latency",
        what: "Whether idle states could be held off for a measurement.",
        taken: "Whether this user may open /dev/cpu_dma_latency for writing; it is not opened.",
        misleads: "It is left alone: the machine is measured as it is.",
    },
    source: "kernel Documentation/power/pm_qos_interface.rst",
    examine: dma_latency,
};

fn dma_latency(machine: &Machine) -> Verdict {
    match machine.permissions.dma_latency {
        Some(true) => Verdict::ok("/dev/cpu_dma_latency may be written; it is left alone"),
        Some(false) => Verdict::note(
            "/dev/cpu_dma_latency may not be written by this user",
            "idle states cannot be held off: the machine is measured as it is",
            "as root, or with write permission on the device",
        ),
        None => Verdict::note(
            "no /dev/cpu_dma_latency here",
            "idle states cannot be held off from here: the machine is measured as it is",
            "in a container: docker run --device /dev/cpu_dma_latency",
        ),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who sets the frequency of the CPUs.

use super::{Verdict, sysfs_is_hidden};
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst";

const CURE: &str = "as root: cpupower frequency-set -g performance (or write it to \
                    /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor)";

pub(super) fn examine(machine: &Machine) -> Verdict {
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

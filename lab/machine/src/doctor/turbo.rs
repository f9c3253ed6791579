// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frequencies above the nominal one, taken while heat and neighbours allow.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str =
    "kernel Documentation/admin-guide/pm/cpufreq.rst, boost; intel_pstate.rst, no_turbo";

pub(super) fn examine(machine: &Machine) -> Verdict {
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

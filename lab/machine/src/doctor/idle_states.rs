// SPDX-License-Identifier: MIT OR Apache-2.0
//! How deep an idle CPU sleeps, which a wake after a long gap has to wait for.

use super::{Verdict, sysfs_is_hidden};
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/admin-guide/pm/cpuidle.rst";

/// An exit of 10 µs is longer than most wakes themselves.
const DEEP_US: u64 = 10;

pub(super) fn examine(machine: &Machine) -> Verdict {
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

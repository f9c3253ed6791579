// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel's own counters and trace events can be read beside the clock.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/admin-guide/perf-security.rst; perf_event_open(2)";

/// From this level on, counting what the kernel does for one's own process is refused.
const OWN_USER_CODE_ONLY: i64 = 2;

pub(super) fn examine(machine: &Machine) -> Verdict {
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

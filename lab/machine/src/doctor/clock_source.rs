// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's clock source: what a reading of the clock costs, and
//! whether the processor's counter may be trusted.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/timers/timekeeping.rst; vdso(7)";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let kernel = &machine.kernel;
    let Some(name) = kernel.clock_source.as_deref() else {
        return Verdict::note(
            "hidden (no /sys/devices/system/clocksource)",
            "whether the kernel trusts the time-stamp counter is unknown, so the monotonic clock is used",
            "show /sys to the container",
        );
    };
    match name {
        "tsc" | "arch_sys_counter" | "riscv_clocksource" => Verdict::ok(name),
        // Read in user mode too, from a page the hypervisor shares,
        // but not by us: its scale is the kernel's own affair.
        "kvm-clock" | "hyperv_clocksource_tsc_page" => Verdict::note(
            name,
            "times are taken with clock_gettime, some tens of nanoseconds a reading, instead of from the \
             counter itself",
            switch_to_tsc(kernel.clock_sources.as_deref()),
        ),
        _ => Verdict::warn(
            name,
            "every reading of the clock is a system call or a slow device access, up to some microseconds, \
             and is part of each time taken",
            switch_to_tsc(kernel.clock_sources.as_deref()),
        ),
    }
}

fn switch_to_tsc(available: Option<&str>) -> &'static str {
    if available.is_some_and(|list| list.split_ascii_whitespace().any(|name| name == "tsc")) {
        "as root: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
    } else {
        "the kernel does not offer tsc: see its log for the reason (dmesg | grep -i tsc); it may have found \
         the counters of two CPUs out of step"
    }
}

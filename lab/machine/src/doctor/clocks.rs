// SPDX-License-Identifier: MIT OR Apache-2.0
//! What time is taken by, and how fast the machine runs from one moment to the next.

use super::{Family, Verdict};
use doorbell_results::about::About;
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Source;
use doorbell_results::machine::clock_quality::ClockQuality;
use doorbell_results::written::{time, time_ns};

pub(super) const CLOCK_SOURCE: Family = Family {
    about: About {
        name: "clock-source",
        what: "The clock source the kernel uses: what a reading of the clock costs, and \
            whether the processor's counter may be trusted.",
        taken: "/sys/devices/system/clocksource.",
        misleads: "The kernel may have given the counter up for a reason that only its log tells.",
    },
    source: "kernel Documentation/timers/timekeeping.rst; vdso(7)",
    examine: clock_source,
};

fn clock_source(machine: &Machine) -> Verdict {
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

pub(super) const TSC: Family = Family {
    about: About {
        name: "tsc",
        what: "The clock of the run as it was measured: its grid, the cost of a reading, the \
            skew between CPUs, its drift.",
        taken: "Readings in a row for grid and cost, readings passed between CPUs for the \
            skew, the monotonic clock for the drift.",
        misleads: "The skew is a bound from round trips: it cannot be told finer than half of one.",
    },
    source: "Intel SDM vol. 3B, Time-Stamp Counter, Invariant TSC; Arm ARM, \
    D12, The Generic Timer; RISC-V unprivileged manual, Zicntr; clock_getres(2)",
    examine: tsc,
};

/// A grid of a microsecond hides most of a wake-up on one core (some
/// microseconds): nothing below it can be told.
const COARSEST_GRID_PS: u64 = 1_000_000;
/// A tenth of that: visible in the figures of a spinning waiter, which are 50 to 250 ns.
const COARSE_GRID_PS: u64 = 100_000;
/// From here on a spinning waiter's times are single steps of the clock. Counters of x86 step by 10
/// ns and less, those of ARM by up to 42.
const VISIBLE_GRID_PS: u64 = 15_000;
/// Two readings belong to every stamped time; dearer ones than this
/// are a tenth of the shortest sleep's wake.
const DEAR_READING_PS: u64 = 200_000;
/// Times from one CPU to another are wrong by this much at most; half
/// a microsecond is a tenth of a wake across cores.
const GREAT_SKEW_NS: f64 = 500.0;
/// A clock that runs wrong by this is wrong by a tenth of a per cent,
/// as much as a histogram's bucket.
const GREAT_DRIFT_PPM: f64 = 1000.0;

fn tsc(machine: &Machine) -> Verdict {
    let name = match machine.clock.source {
        Source::Tsc => "time-stamp counter",
        Source::Monotonic if machine.kernel.system.as_deref() == Some("Windows") => "performance counter",
        Source::Monotonic => "CLOCK_MONOTONIC",
        Source::Cntvct => "virtual count of the generic timer",
        Source::Rdtime => "time counter",
    };
    let flags: Vec<&str> =
        ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| machine.processor.has(flag)).collect();
    let invariant = if flags.is_empty() { String::new() } else { format!(" ({})", flags.join(", ")) };
    let Some(quality) = &machine.clock_quality else {
        return Verdict::ok(format!("{name}{invariant}, not measured"));
    };
    let seen = format!("{name}{invariant}: {}", describe(quality));
    if quality.grid_ps >= COARSEST_GRID_PS {
        return Verdict::unfit(
            seen,
            "times shorter than the grid come out as zero or as one step of it",
            "make the kernel use a finer clock source (see clock-source), or measure on another machine",
        );
    }
    if quality.worst_skew_ns().is_some_and(|worst| worst >= GREAT_SKEW_NS) {
        return Verdict::warn(
            seen,
            "one-way times between these CPUs may be wrong by that much, in either direction; round trips \
             are not",
            "believe round trips; have the kernel check the counters (clocksource watchdog), or measure when \
             the CPUs are not shared with other virtual machines",
        );
    }
    if quality
        .drift_ppm
        .is_some_and(|ppm| ppm.abs() - quality.drift_resolution_ppm.unwrap_or(0.0) >= GREAT_DRIFT_PPM)
    {
        return Verdict::warn(
            seen,
            "every time is wrong by that share",
            "measure again; if it stays, the hypervisor scales the counter: have it expose an invariant one",
        );
    }
    if quality.grid_ps >= COARSE_GRID_PS || quality.cost_ps >= DEAR_READING_PS {
        return Verdict::warn(
            seen,
            "the grid and the reading are a visible part of short times: spinning, sender-side cost",
            match machine.clock.source {
                Source::Monotonic => "make the kernel use the processor's counter (see clock-source)",
                Source::Tsc | Source::Cntvct | Source::Rdtime => {
                    "believe times that are many steps long; a finer counter is another machine's"
                }
            },
        );
    }
    if quality.grid_ps >= VISIBLE_GRID_PS {
        return Verdict::note(
            seen,
            "single times are whole steps of the clock: a short one reads a step too long or too \
             short. Quantiles lie between the steps, as many samples allow; smallest and greatest \
             times do not",
            "nothing need be done; compare medians of short times, not their extremes",
        );
    }
    Verdict::ok(seen)
}

fn describe(quality: &ClockQuality) -> String {
    let mut text = format!("grid {}, reading {}", time(quality.grid_ps as f64), time(quality.cost_ps as f64));
    if let Some(worst) = quality.worst_skew_ns() {
        text += &format!(", skew within ±{}", time_ns(worst.round()));
    }
    if let (Some(ppm), Some(resolution)) = (quality.drift_ppm, quality.drift_resolution_ppm) {
        text += &format!(", drift {ppm:.1} ± {resolution:.1} ppm");
    }
    text
}

pub(super) const SPEED: Family = Family {
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
    source: "B. Gregg, Systems Performance, 2nd ed., 2020, 6.3.4: shared cores and frequency",
    examine: speed,
};

/// What is less is not seen in so short a look.
const LEAST: f64 = 0.001;

/// From here on differences that matter to most are not seen but in slices.
const GREAT: f64 = 0.05;

fn speed(machine: &Machine) -> Verdict {
    let Some(speed) = &machine.speed else { return Verdict::ok("not measured") };
    let fit_for = speed.fit_for();
    let seen = format!(
        "{}; fit for differences of {:.1} %, by a look of 80 ms",
        speed.title(),
        fit_for.max(LEAST) * 100.0
    );
    if fit_for < GREAT {
        return Verdict::ok(seen);
    }
    Verdict::note(
        seen,
        "smaller differences between two runs, and of what spins or sleeps long, come out as inconclusive",
        "compare within one run, by what takes turns in slices; or leave the machine alone",
    )
}

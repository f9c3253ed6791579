// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of the run as it was measured: grid, cost, skew between CPUs, drift.

use super::Verdict;
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Source;
use doorbell_results::machine::clock_quality::ClockQuality;
use doorbell_results::written::{time, time_ns};

pub(super) const SOURCE: &str = "Intel SDM vol. 3B, Time-Stamp Counter, Invariant TSC; Arm ARM, \
    D12, The Generic Timer; RISC-V unprivileged manual, Zicntr; clock_getres(2)";

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

pub(super) fn examine(machine: &Machine) -> Verdict {
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else runs: CPU time that went to other programs in the last fifth of a second.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "proc_stat(5); kernel Documentation/accounting/psi.rst";

/// As much as a trial may meet before it counts as interference (the
/// bound of the trials' own environment), per pair.
const BUSY_SHARE: f64 = 0.05;

/// With less than half a CPU left over, no side of a trial runs when it is woken.
const FREE_SHARE: f64 = 0.5;

pub(super) fn examine(machine: &Machine) -> Verdict {
    let Some((load, share)) = machine.load.as_ref().and_then(|load| Some((load, load.foreign_share?))) else {
        return Verdict::note(
            "unknown (/proc/stat is hidden)",
            "trials with interference by other programs cannot be told from others",
            "show /proc/stat to the container",
        );
    };
    let resolution = load.foreign_resolution.or(load.share_resolution).unwrap_or(0.0);
    let usable = load.cpus.len() as f64;
    let average = load.load_average.map(|average| format!(", load average {average:.2}")).unwrap_or_default();
    let busiest = load.busiest.as_ref().map(|name| format!(", most of it '{name}'")).unwrap_or_default();
    let seen = format!(
        "other programs use {:.0} ± {:.0} % of one CPU, of {usable} CPUs{busiest}{average}",
        share * 100.0,
        resolution * 100.0
    );
    let sure = share - resolution;
    if sure > usable - FREE_SHARE {
        return Verdict::unfit(
            seen,
            "no CPU is free: every wake-up waits for somebody else's time slice",
            "stop the other work, or wait until it is done",
        );
    }
    if sure > BUSY_SHARE * (usable / 2.0).max(1.0) {
        return Verdict::warn(
            seen,
            "wake-ups meet other programs on their CPU; such trials are repeated, then marked with \
             interference",
            "stop the other work, or measure on CPUs it does not use (--cpus)",
        );
    }
    Verdict::ok(seen)
}

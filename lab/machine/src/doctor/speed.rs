// SPDX-License-Identifier: MIT OR Apache-2.0
//! What difference between two things this machine can show.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str =
    "B. Gregg, Systems Performance, 2nd ed., 2020, 6.3.4: shared cores and frequency";

/// What is less is not seen in so short a look.
const LEAST: f64 = 0.001;

/// From here on differences that matter to most are not seen but in slices.
const GREAT: f64 = 0.05;

pub(super) fn examine(machine: &Machine) -> Verdict {
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

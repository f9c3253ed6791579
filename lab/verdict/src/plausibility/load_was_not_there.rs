// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loaded trial was loaded.

use super::{Known, Rule};
use doorbell_results::about::About;
use doorbell_results::record::Record;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "load-was-not-there",
        what: "A trial that is called loaded was not: the proof of its load is missing, a worker \
            did nothing, or a CPU was idle under a worker for every CPU.",
        taken: "The slices of work each worker counted while the trial ran, and the share of the \
            trial for which each CPU was busy, which must be 90 % where there is a worker for \
            every CPU.",
        misleads: "Busy shares are not judged in trials of less than 0.2 s, where the kernel's \
            ticks of 10 ms tell too little, nor under churn, which sleeps between its wake-ups.",
    },
    evidence,
};

/// Busy shares are judged only where ticks of 10 ms tell a tenth of the trial.
const BUSY_RESOLUTION: f64 = 0.05;
/// What a CPU must be busy for under a load that has a worker for every CPU.
const BUSY: f64 = 0.9;

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let Some(load) = &record.configuration.load else { return Vec::new() };
    if !record.outcome.is_usable() {
        return Vec::new();
    }
    let Some(proof) = &record.load else {
        return vec![format!(
            "{} workers of {} were asked for, and no proof of them is there",
            load.workers, load.kind
        )];
    };
    let mut evidence = Vec::new();
    if proof.fewest_slices == 0 {
        evidence.push("a worker did not work while the trial ran".to_owned());
    }
    // Arithmetic never waits; what churns sleeps between its wakes.
    let full = load.workers as usize >= proof.busy.len() && load.kind != "churn";
    if full
        && proof.busy_resolution <= BUSY_RESOLUTION
        && let Some((cpu, share)) = proof.least_busy()
        && share + 2.0 * proof.busy_resolution < BUSY
    {
        evidence.push(format!(
            "CPU {cpu} was busy for {:.1} % of a trial under {} workers",
            share * 100.0,
            load.workers
        ));
    }
    evidence
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether other work interfered with so much of a run that all it says is provisional, for every verb alike.

use doorbell_results::record::{Outcome, ResultFile};

/// More than this share of the trials makes a run provisional.
const MOST: f64 = 0.5;

/// The trials that others interfered with to their last try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provisional {
    pub trials: usize,
    /// All trials that measured something.
    pub of: usize,
}

/// How provisional what `result` says is; none where it is not, and where nothing was measured: that is said elsewhere.
pub fn provisional(result: &ResultFile) -> Option<Provisional> {
    let measured = |outcome: &Outcome| matches!(outcome, Outcome::Done | Outcome::Implausible { .. });
    let ran = || result.records.iter().filter(|record| measured(&record.outcome));
    let found =
        Provisional { trials: ran().filter(|record| record.had_interference()).count(), of: ran().count() };
    (found.trials as f64 > MOST * found.of as f64).then_some(found)
}

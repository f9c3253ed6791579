// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether other work interfered with so much of a run that all it says is provisional, for every verb alike.

use doorbell_results::record::{Outcome, ResultFile};

/// More than this share of the trials makes a run provisional.
const MOST: f64 = 0.5;

/// The trials that others interfered with to their last try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provisional {
    pub trials: usize,
    /// All trials that ran.
    pub of: usize,
}

/// How provisional what `result` says is; none where it is not.
pub fn provisional(result: &ResultFile) -> Option<Provisional> {
    let ran = || result.records.iter().filter(|record| !matches!(record.outcome, Outcome::Skipped { .. }));
    let found =
        Provisional { trials: ran().filter(|record| record.had_interference()).count(), of: ran().count() };
    (found.trials as f64 > MOST * found.of as f64).then_some(found)
}

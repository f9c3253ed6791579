// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether other work interfered with so much of a run that all it
//! says is provisional, for every verb alike.

use doorbell_results::record::ResultFile;

/// More than this share of the trials makes a run provisional.
const MOST: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provisional {
    pub trials: usize,
    /// All trials that measured something.
    pub of: usize,
}

/// How provisional what `result` says is; none where it is not, and
/// where nothing was measured: that is said elsewhere.
pub fn provisional(result: &ResultFile) -> Option<Provisional> {
    let ran = || result.records.iter().filter(|record| record.outcome.measured());
    let found =
        Provisional { trials: ran().filter(|record| record.had_interference()).count(), of: ran().count() };
    (found.trials as f64 > MOST * found.of as f64).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::trusted;
    use doorbell_results::record::warning::INTERFERENCE;
    use doorbell_results::record::{Outcome, sample};

    fn interfered() -> ResultFile {
        let mut result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
        for record in &mut result.records {
            record.warnings.push(INTERFERENCE.warning(String::new(), "", ""));
        }
        result
    }

    /// "Provisional: other work interfered with 6 of 6 trials" stood
    /// above a run of which no trial could be started.
    #[test]
    fn what_could_not_be_measured_is_not_provisional() {
        let mut result = interfered();
        assert_eq!(provisional(&result), Some(Provisional { trials: 6, of: 6 }));
        for record in &mut result.records {
            record.outcome = Outcome::Failed { cause: "no process could be started".to_owned() };
        }
        assert_eq!(provisional(&result), None);
    }

    /// "Provisional: 5 of 5" above "Trust: other work interfered with
    /// 6 of 6 trials", of a run that was cut.
    #[test]
    fn a_cut_trial_counts_here_and_in_what_is_told_of_trust() {
        let mut result = interfered();
        result.records[5].outcome = Outcome::Partial;
        let trust = trusted(&result);
        assert_eq!((trust.interfered, trust.measured), (Some(6), 6));
        assert_eq!(trust.provisional, Some(Provisional { trials: 6, of: 6 }));
    }
}

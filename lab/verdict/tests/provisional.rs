// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said to be provisional.

use doorbell_results::record::warning::INTERFERENCE;
use doorbell_results::record::{Outcome, Warning, sample};
use doorbell_verdict::provisional::{Provisional, provisional};

/// "Provisional: other work interfered with 6 of 6 trials" stood
/// above a run of which no trial could be started.
#[test]
fn what_could_not_be_measured_is_not_provisional() {
    let mut result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
    assert_eq!(provisional(&result), None);
    let words = || "planted".to_owned();
    for record in &mut result.records {
        let name = INTERFERENCE.name.to_owned();
        record.warnings.push(Warning { name, cause: words(), effect: words(), cure: words() });
    }
    assert_eq!(provisional(&result), Some(Provisional { trials: 6, of: 6 }));
    for record in &mut result.records {
        record.outcome = Outcome::Failed { cause: "no process could be started".to_owned() };
    }
    assert_eq!(provisional(&result), None);
}

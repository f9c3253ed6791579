// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a run is said to be trusted.

use doorbell_report::screen::screen;
use doorbell_report::style::Style;
use doorbell_results::record::warning::INTERFERENCE;
use doorbell_results::record::{Outcome, ResultFile, Warning, sample};

fn trust(result: &ResultFile) -> String {
    let shown = screen(result, &Style::PLAIN);
    let line = shown.lines().find(|line| line.starts_with("Trust: "));
    line.unwrap_or_else(|| panic!("no line says how far to trust it:\n{shown}")).to_owned()
}

fn interference() -> Warning {
    let words = || "planted".to_owned();
    Warning { name: INTERFERENCE.name.to_owned(), cause: words(), effect: words(), cure: words() }
}

/// "Trust: other work interfered with 6 of 6 trials, 6 hung or
/// failed" stood under a run that measured nothing.
#[test]
fn nothing_is_said_to_have_interfered_with_what_was_not_measured() {
    let mut result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
    result.records.iter_mut().for_each(|record| record.warnings.push(interference()));
    assert_eq!(trust(&result), "Trust: other work interfered with 6 of 6 trials.");
    for record in result.records.iter_mut().take(4) {
        record.outcome = Outcome::Failed { cause: "no process could be started".to_owned() };
    }
    assert_eq!(trust(&result), "Trust: other work interfered with 2 of 2 trials, 4 hung or failed.");
    for record in &mut result.records {
        record.outcome = Outcome::Failed { cause: "no process could be started".to_owned() };
    }
    assert_eq!(trust(&result), "Trust: nothing was measured, 6 hung or failed.");
}

/// "Trust: other work interfered with 0 of 14 trials" stood under a fan-out of Windows, which tells
/// nobody what others took of a CPU.
#[test]
fn where_the_system_tells_nothing_of_other_work_no_number_of_trials_is_said_to_be_free_of_it() {
    let mut result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
    assert_eq!(trust(&result), "Trust: other work interfered with 0 of 6 trials.");
    for record in &mut result.records {
        record.environment.foreign_share = None;
        record.environment.steal_share = None;
    }
    let told = "Trust: interference by other work was not measured.";
    assert_eq!(trust(&result), told);
    // What was seen is told all the same.
    result.records[0].warnings.push(interference());
    assert_eq!(trust(&result), "Trust: other work interfered with 1 of 6 trials.");
}

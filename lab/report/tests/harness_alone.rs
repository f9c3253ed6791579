// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of which the harness is all that was asked for.

use doorbell_report::screen::screen;
use doorbell_report::style::Style;
use doorbell_results::record::sample;

/// `ping null` said "No trial of this run has figures" and had 18 of 18.
#[test]
fn the_harness_is_the_answer_where_nothing_else_was_asked_for() {
    let told = |subjects: &[&str]| {
        let configurations: Vec<_> = subjects.iter().map(|subject| sample::configuration(subject)).collect();
        let result = sample::result(&configurations, 6, |_, _| 16_000.0);
        screen(&result, &Style { width: 80, ..Style::PLAIN })
    };
    let alone = told(&["null"]);
    assert!(alone.contains("null (the harness itself)") && !alone.contains("No trial"), "{alone}");
    assert!(told(&["null", "futex"]).contains("futex"));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that is done with a result file after it was read; for
//! the fuzzer and for the test that mutates files.

use doorbell_report::style::Style;
use doorbell_report::{comparison, export, summary};
use doorbell_results::record::{read, write};
use doorbell_verdict::compare::{RELEVANT, compare};
use doorbell_verdict::plausibility::{Known, near_the_clock, violations};
use doorbell_verdict::populations;

/// Reads `bytes` as a result file and, if they are one, does with it all that the command does.
/// Returns whether they were one.
pub(crate) fn exercise(bytes: &[u8]) -> bool {
    let Ok(mut result) = read::read_bytes(bytes.to_vec(), "fuzzed") else { return false };
    for record in &result.records {
        let known = Known { primitives: &result.primitives, clock_step_ns: 10.0, skew_ns: 50.0 };
        violations(record, &known);
        near_the_clock(record, &known);
        for series in record.series.values() {
            series.decode().expect("the reader has checked every histogram");
        }
    }
    result.records.iter_mut().for_each(populations::explain);
    for format in export::ALL {
        (format.export)(&result, &mut std::io::sink()).expect("a sink takes everything");
    }
    summary::summary(&result, &Style::PLAIN);
    comparison::comparison(&compare(&result, &result, RELEVANT), "a", "b", &Style::PLAIN);
    let again = read::read_bytes(write::to_json(&result).into_bytes(), "written");
    again.expect("what is written can be read");
    true
}

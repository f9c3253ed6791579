// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the rules share: a record that breaks none.

use super::{Known, violations};
use doorbell_results::record::result::Floors;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Histogram, Record, Series, sample};

/// The rules that `record` breaks.
pub(super) fn broken(record: &Record, floors: &[Floors], clock_step_ns: f64) -> Vec<String> {
    violations(record, &Known { floors, clock_step_ns }).into_iter().map(|broken| broken.rule).collect()
}

/// A record that breaks none, and the floors of its run.
pub(super) fn sane() -> (Record, Vec<Floors>) {
    (sample::record(sample::cell("futex"), 0, 16_000.0), vec![sample::floors(0, 1.0), sample::floors(1, 1.0)])
}

/// Exactly the rule `name` is broken by `record`.
pub(super) fn only(name: &str, record: &Record, floors: &[Floors]) {
    assert_eq!(broken(record, floors, 10.0), [name]);
}

/// Puts other times in the place of a series.
pub(super) fn replace(record: &mut Record, quantity: Quantity, histogram: &Histogram) {
    record.series.insert(quantity, Series::from(histogram));
}

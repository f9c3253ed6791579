// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the rules share: a record that breaks none.

use super::{Known, violations};
use doorbell_results::record::result::Primitives;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Histogram, Record, Series, sample};

/// The rules that `record` breaks.
pub(super) fn broken(record: &Record, primitives: &[Primitives], clock_step_ns: f64) -> Vec<String> {
    violations(record, &Known { primitives, clock_step_ns, skew_ns: 0.0 })
        .into_iter()
        .map(|broken| broken.rule)
        .collect()
}

/// A record that breaks none, and the primitive costs of its run.
pub(super) fn sane() -> (Record, Vec<Primitives>) {
    (
        sample::record(sample::configuration("futex"), 0, 16_000.0),
        vec![sample::primitives(0, 1.0), sample::primitives(1, 1.0)],
    )
}

/// Exactly the rule `name` is broken by `record`.
pub(super) fn only(name: &str, record: &Record, primitives: &[Primitives]) {
    assert_eq!(broken(record, primitives, 10.0), [name]);
}

/// Puts other times in the place of a series.
pub(super) fn replace(record: &mut Record, quantity: Quantity, histogram: &Histogram) {
    record.series.insert(quantity, Series::from(histogram));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits that did not end: a variant that has some is recommended nowhere, for its other trials are a choice of the lucky ones.

use doorbell_results::record::{Outcome, Variant};

/// In how many of a variant's trials, in words; none if every wait ended.
pub(super) fn hung(variant: &Variant) -> Option<String> {
    let hung = variant.records.iter().filter(|record| matches!(record.outcome, Outcome::Hung { .. })).count();
    (hung > 0).then(|| format!("in {hung} of {} trials a wait did not end", variant.records.len()))
}

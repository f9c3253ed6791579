// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits that did not end: a variant that has some is recommended nowhere, for its other trials are
//! a choice of the lucky ones.

use super::verdict::Reason;
use doorbell_results::record::{Outcome, Variant};

/// In how many of a variant's trials; none if every wait ended.
pub(super) fn hung(variant: &Variant) -> Option<Reason> {
    let trials =
        variant.records.iter().filter(|record| matches!(record.outcome, Outcome::Hung { .. })).count();
    (trials > 0).then_some(Reason::Hung { trials, of: variant.records.len() })
}

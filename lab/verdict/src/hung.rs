// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a variant may not be chosen: waits of it did not end, so that its other trials are a choice
//! of the lucky ones, or it has no figures.

use super::verdict::Reason;
use doorbell_results::record::{Outcome, Quantity, Variant};

/// In how many of a variant's trials; none if every wait ended.
pub(super) fn hung(variant: &Variant) -> Option<Reason> {
    let trials =
        variant.records.iter().filter(|record| matches!(record.outcome, Outcome::Hung { .. })).count();
    (trials > 0).then_some(Reason::Hung { trials, of: variant.records.len() })
}

/// Why it has no figures of `quantity`, if it has none.
pub(super) fn without_figures(variant: &Variant, quantity: Quantity) -> Option<String> {
    if variant.usable().any(|record| record.series.contains_key(&quantity)) {
        return None;
    }
    Some(match variant.records.first().map(|record| &record.outcome) {
        Some(Outcome::Skipped { reason }) => reason.clone(),
        Some(Outcome::Failed { cause }) => format!("failed: {cause}"),
        Some(Outcome::Hung { .. }) => "hung".to_owned(),
        Some(Outcome::Implausible { violations }) => {
            let rules: Vec<&str> = violations.iter().map(|broken| broken.rule.as_str()).collect();
            format!("its figures cannot be true ({})", rules.join(", "))
        }
        _ => format!("{} was not timed", quantity.name()),
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the error a run may spend that is looked at before its end.
//!
//! Whoever looks after every pair and ends at the first difference is wrong in 19 of 100 runs of
//! equal things. So looks are few, at a quarter, a half and all of the time, and each spends its
//! part: what is spent up to the share τ of the time is τ² of all (K. Kim, D. L. DeMets, *Design
//! and analysis of group sequential tests based on the type I error spending rate function*, 1987).
//! A run that somebody ends is looked at then.

use super::slices::ERROR;
use doorbell_results::plan::Plan;

/// The error that one judgement of a run of `plan` may have that ends as soon as it is decided:
/// looks at so many blocks share it evenly.
pub fn error(plan: &Plan) -> f64 {
    ERROR / plan.looks.len().max(1) as f64
}

/// The shares of a run's time at which it is looked at.
pub const LOOKS: [f64; 3] = [0.25, 0.5, 1.0];

/// What the look at the share `at` of the time may spend of `error`, if the last was at `before`.
pub fn spent(error: f64, before: f64, at: f64) -> f64 {
    let [before, at] = [before, at].map(|share| share.clamp(0.0, 1.0));
    error * (at * at - before * before).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_spend_the_error_and_a_run_that_is_ended_spends_no_more() {
        let all = |looks: &[f64]| {
            let before = std::iter::once(0.0).chain(looks.iter().copied());
            before.zip(looks).map(|(before, at)| spent(0.05, before, *at)).sum::<f64>()
        };
        assert!((all(&LOOKS) - 0.05).abs() < 1e-12);
        assert!(all(&[0.25, 0.4]) < 0.05);
    }
}

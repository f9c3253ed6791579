// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well times are known that were taken on two clocks, a GPU's
//! and the CPU's: each trial says within what.

use super::missed::limit_ps;
use super::quantile::Limit;
use doorbell_results::figure::gpu::CLOCK_BOUND;
use doorbell_results::record::Variant;

/// What each usable trial says, nanoseconds, the least first; nothing
/// of times that were taken on one clock.
pub fn bounds_ns(variant: &Variant) -> Vec<f64> {
    let figures = variant.usable().flat_map(|record| &record.figures);
    let mut bounds: Vec<f64> =
        figures.filter(|figure| figure.name == CLOCK_BOUND).map(|figure| figure.value).collect();
    bounds.sort_unstable_by(f64::total_cmp);
    bounds
}

/// How far any time may be off, picoseconds; 0 on one clock.
pub fn within_ps(variant: &Variant) -> u64 {
    bounds_ns(variant).last().map_or(0, |ns| (ns * 1e3).ceil() as u64)
}

/// A limit as the times of `variant` are held against it.
pub fn limit(limit_ns: u64, variant: &Variant) -> Limit {
    Limit { ps: limit_ps(limit_ns), within_ps: within_ps(variant) }
}

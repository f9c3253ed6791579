// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time at each percentile, on an axis where each further nine has equal room.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::{Log, Nines};
use super::svg::{Path, Picture};
use crate::figures::Distribution;
use crate::unit::{count, time};

/// Percentiles that carry a mark and their value.
const MARKED: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Draws it; `quantity` names what was timed.
pub fn draw(curves: &[Curve], quantity: &str) -> Picture {
    let shown: Vec<&Curve> = curves.iter().collect();
    let frame = Frame::with_legend(&shown);
    let ends = curves.iter().flat_map(|curve| [curve.series.min_ps as f64, curve.series.max_ps as f64]);
    let most = curves.iter().map(|curve| curve.series.count).max().unwrap_or(1);
    let x = Nines::new(most, frame.left, frame.right);
    let y = Log::over(ends, frame.bottom, frame.top);
    let mut picture =
        frame.picture(format!("Time at each percentile, {quantity}, {} variants", curves.len()));
    frame.horizontal(&mut picture, &x.ticks(), "percentile, % (each nine as wide as the last)");
    frame.vertical(&mut picture, &y.time_ticks(), &format!("{quantity} (logarithmic)"));
    for curve in curves {
        let own = curve.series.count.max(1);
        let places: Vec<[f64; 2]> =
            steps(curve.series).into_iter().map(|(q, ps)| [x.at(q), y.at(ps as f64)]).collect();
        let title = format!("{}: {} samples", curve.name, count(own));
        let mut variant = group(curve).titled(&title).child(Path::through(&places).element(&stroke(curve)));
        // A percentile is marked only where more than one sample lies beyond it.
        for q in MARKED.into_iter().filter(|q| (1.0 - q) * own as f64 > 1.0) {
            let ps = curve.series.reading(q) as f64;
            let title = format!("{} % within {}", q * 100.0, time(ps));
            variant.push(mark(curve, x.at(q), y.at(ps)).titled(&title));
        }
        picture.push(variant);
    }
    frame.legend(&mut picture, &shown);
    picture
}

/// Quantile and time, picoseconds, at both ends of each step: all quantiles that fall into a bucket
/// have its time, so that what [`Distribution::reading`] says of any of them lies on the line.
fn steps(series: &Distribution) -> Vec<(f64, u64)> {
    let own = series.count.max(1);
    let (mut seen, mut from) = (0_u64, 0.0);
    let mut steps = Vec::with_capacity(2 * series.buckets.len());
    for &(ps, samples) in &series.buckets {
        // Up to this bucket's last sample, whose share lies one sample below the next bucket's first.
        seen = seen.saturating_add(samples);
        let to = if seen >= own { 1.0 - 1.0 / own as f64 } else { seen as f64 / own as f64 };
        let ps = if seen >= own { series.max_ps } else { ps.clamp(series.min_ps, series.max_ps) };
        steps.extend([(from, ps), (to, ps)]);
        from = to;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line led from bucket to bucket while the marks stood on
    /// its steps, so that marks lay beside it.
    #[test]
    fn every_mark_lies_on_its_curve() {
        let series = Distribution {
            count: 100_000,
            min_ps: 900,
            max_ps: 70_000,
            mean_ps: 2000.0,
            buckets: vec![(1000, 60_000), (2000, 35_000), (9000, 4_950), (69_000, 50)],
            block_medians_ps: Vec::new(),
            grid_ps: 0.0,
        };
        let steps = steps(&series);
        for q in MARKED {
            let there = |ends: &[(f64, u64)]| {
                (ends[0].0..=ends[1].0).contains(&q)
                    && ends[0].1 == ends[1].1
                    && ends[0].1 == series.reading(q)
            };
            assert!(steps.chunks_exact(2).any(there), "p{} of {steps:?}", q * 100.0);
        }
    }
}

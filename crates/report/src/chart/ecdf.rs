// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of samples that took at most so long, one step curve per variant.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::{Linear, Log};
use super::svg::{Path, Picture};
use crate::unit::{count, time};

/// Draws it; `quantity` names what was timed.
pub fn draw(curves: &[Curve], quantity: &str) -> Picture {
    let shown: Vec<&Curve> = curves.iter().collect();
    let frame = Frame::with_legend(&shown);
    // One stall of 20 ms would push everything else into a corner:
    // the last thousandth is left to the other charts.
    let ends = curves
        .iter()
        .flat_map(|curve| [curve.series.min_ps, curve.series.quantile(0.999)])
        .map(|ps| ps as f64);
    let x = Log::over(ends, frame.left, frame.right);
    let y = Linear::new(100.0, frame.bottom, frame.top);
    let mut picture =
        frame.picture(format!("Share of samples within a time, {quantity}, {} variants", curves.len()));
    frame.horizontal(
        &mut picture,
        &x.time_ticks(),
        &format!("{quantity} (time, logarithmic, to the largest p99.9)"),
    );
    frame.vertical(&mut picture, &y.ticks(|percent| format!("{percent:.0}")), "samples within, %");
    for curve in curves {
        let mut seen = 0_u64;
        let mut places = vec![[x.at(curve.series.min_ps as f64), y.at(0.0)]];
        for &(ps, samples) in &curve.series.buckets {
            let before = seen as f64 * 100.0 / curve.series.count.max(1) as f64;
            seen = seen.saturating_add(samples);
            let share = seen as f64 * 100.0 / curve.series.count.max(1) as f64;
            places.extend([before, share].map(|share| [x.at(ps as f64), y.at(share)]));
        }
        let median = curve.series.reading(0.5) as f64;
        let title = format!("{}: median {}, {} samples", curve.name, time(median), count(curve.series.count));
        picture.push(
            group(curve).titled(&title).child(Path::through(&places).element(&stroke(curve))).child(mark(
                curve,
                x.at(median),
                y.at(50.0),
            )),
        );
    }
    frame.legend(&mut picture, &shown);
    picture
}

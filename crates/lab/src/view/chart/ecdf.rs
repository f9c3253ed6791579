// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of samples that took at most so long, one step curve per arm.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::{Linear, Log};
use super::svg::{Element, Picture, tenths};
use crate::view::unit::{count, time};

/// Draws it; `quantity` names what was timed.
pub fn draw(curves: &[Curve], quantity: &str) -> Picture {
    let shown: Vec<&Curve> = curves.iter().collect();
    let frame = Frame::with_legend(&shown);
    // One stall of 20 ms would push everything else into a corner: the last thousandth is left to the other charts.
    let ends = curves
        .iter()
        .flat_map(|curve| [curve.series.min_ps, curve.series.quantile(0.999)])
        .map(|ps| ps as f64);
    let x = Log::over(ends, frame.left, frame.right);
    let y = Linear::new(100.0, frame.bottom, frame.top);
    let mut picture =
        frame.picture(format!("Share of samples within a time, {quantity}, {} arms", curves.len()));
    frame.horizontal(
        &mut picture,
        &x.time_ticks(),
        &format!("{quantity} (time, logarithmic, to the largest p99.9)"),
    );
    frame.vertical(&mut picture, &y.ticks(|percent| format!("{percent:.0}")), "samples within, %");
    for curve in curves {
        let mut path = format!("M{} {}", tenths(x.at(curve.series.min_ps as f64)), tenths(y.at(0.0)));
        let mut seen = 0_u64;
        let mut drawn = (x.at(curve.series.min_ps as f64), 0.0);
        for &(ps, samples) in &curve.series.buckets {
            seen = seen.saturating_add(samples);
            let share = seen as f64 * 100.0 / curve.series.count.max(1) as f64;
            let place = (x.at(ps as f64), share);
            // Steps smaller than half a unit cannot be seen.
            let visible = place.0 - drawn.0 >= 0.5 || (y.at(place.1) - y.at(drawn.1)).abs() >= 0.5;
            if visible || seen == curve.series.count {
                path.push_str(&format!("H{}V{}", tenths(place.0), tenths(y.at(place.1))));
                drawn = place;
            }
        }
        let median = curve.series.quantile(0.5) as f64;
        let title = format!("{}: median {}, {} samples", curve.name, time(median), count(curve.series.count));
        picture.push(
            group(curve)
                .titled(&title)
                .child(Element::new("path").with("class", &stroke(curve)).with("d", &path))
                .child(mark(curve, x.at(median), y.at(50.0))),
        );
    }
    frame.legend(&mut picture, &shown);
    picture
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time at each percentile, on an axis where each further nine has equal room.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::{Log, Nines};
use super::svg::{Path, Picture};
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
        let mut seen = 0_u64;
        let mut places = vec![[x.at(0.0), y.at(curve.series.min_ps as f64)]];
        for &(ps, samples) in &curve.series.buckets {
            // Up to this bucket's last sample, whose share lies one sample below the next bucket's first.
            seen = seen.saturating_add(samples);
            let q = if seen >= own { 1.0 - 1.0 / own as f64 } else { seen as f64 / own as f64 };
            places.push([x.at(q), y.at(ps as f64)]);
        }
        let title = format!("{}: {} samples", curve.name, count(own));
        let mut variant = group(curve).titled(&title).child(Path::through(&places).element(&stroke(curve)));
        // A percentile is marked only where more than one sample lies beyond it.
        for q in MARKED.into_iter().filter(|q| (1.0 - q) * own as f64 > 1.0) {
            let ps = curve.series.quantile(q) as f64;
            let title = format!("{} % within {}", q * 100.0, time(ps));
            variant.push(mark(curve, x.at(q), y.at(ps)).titled(&title));
        }
        picture.push(variant);
    }
    frame.legend(&mut picture, &shown);
    picture
}

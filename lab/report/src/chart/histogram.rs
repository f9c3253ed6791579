// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many samples took how long, one strip per variant: counts are
//! logarithmic, so that a single worst case shows.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::fill;
use super::scale::Log;
use super::svg::{Path, Picture, cut, label_as, line};
use crate::unit::{count, time};

/// Bins across the chart; wide enough that the histograms' own buckets (0.1 %) never show as teeth.
const BINS: usize = 180;

/// Height of one variant's strip.
const STRIP: f64 = 66.0;

/// Draws it; `quantity` names what was timed.
pub fn draw(curves: &[Curve], quantity: &str) -> Picture {
    let frame = Frame::of_rows(70.0, 14.0, curves.len() as f64 * STRIP);
    let ends = curves.iter().flat_map(|curve| [curve.series.min_ps as f64, curve.series.max_ps as f64]);
    let x = Log::over(ends, frame.left, frame.right);
    let mut picture =
        frame.picture(format!("Number of samples by time, {quantity}, {} variants", curves.len()));
    frame.horizontal(
        &mut picture,
        &x.time_ticks(),
        &format!("{quantity} (time, logarithmic); height: number of samples, logarithmic"),
    );
    let bins: Vec<Vec<u64>> = curves.iter().map(|curve| binned(curve, &x, &frame)).collect();
    let most = bins.iter().flatten().copied().max().unwrap_or(1).max(1);
    for (index, (curve, bins)) in curves.iter().zip(&bins).enumerate() {
        let floor = frame.top + (index + 1) as f64 * STRIP;
        let height = |samples: u64| (samples as f64).ln_1p() / (most as f64).ln_1p() * (STRIP - 22.0);
        let wide = (frame.right - frame.left) / BINS as f64;
        let mut path = Path::from(frame.left, floor);
        for (bin, &samples) in bins.iter().enumerate() {
            let (from, to) = (frame.left + bin as f64 * wide, frame.left + (bin + 1) as f64 * wide);
            let up = if samples == 0 { 0.0 } else { height(samples).max(1.5) };
            path.stair(from, floor - up);
            path.line(to, floor - up);
        }
        path.line(frame.right, floor);
        picture.push(line("axis", frame.left, floor, frame.right, floor));
        let marked: &[u64] = if most > 1 { &[1, most] } else { &[1] };
        for &samples in marked {
            let up = floor - height(samples);
            picture.push(label_as("tick end", frame.left - 6.0, up + 4.0, &short(samples)));
            picture.push(line("grid faint", frame.left, up, frame.right, up));
        }
        let title = format!(
            "{}: {} samples from {} to {}",
            curve.name,
            count(curve.series.count),
            time(curve.series.min_ps as f64),
            time(curve.series.max_ps as f64)
        );
        picture.push(group(curve).titled(&title).child(path.element(&fill(curve))).child(label_as(
            "end",
            frame.right,
            floor - STRIP + 15.0,
            &cut(&title, frame.right - frame.left),
        )));
    }
    picture
}

fn binned(curve: &Curve, x: &Log, frame: &Frame) -> Vec<u64> {
    let mut bins = vec![0_u64; BINS];
    for &(ps, samples) in &curve.series.buckets {
        let share = (x.at(ps as f64) - frame.left) / (frame.right - frame.left);
        let bin = ((share * BINS as f64) as usize).min(BINS - 1);
        bins[bin] = bins[bin].saturating_add(samples);
    }
    bins
}

/// A count in few letters: `1`, `950`, `12k`, `3M`.
fn short(samples: u64) -> String {
    match samples {
        0..1_000 => samples.to_string(),
        1_000..1_000_000 => format!("{}k", samples / 1_000),
        _ => format!("{}M", samples / 1_000_000),
    }
}

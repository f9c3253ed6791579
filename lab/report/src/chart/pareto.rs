// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency against the CPU time it costs: what lies left and low is better, and the dashed line
//! joins those that no other variant beats in both.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::Log;
use super::svg::{LETTER, Picture, cut, label, line, polyline};
use crate::unit::{count, time};

/// Among more variants than these no mark can be told from another.
const MOST: usize = 200;

/// Draws the variants whose CPU time is known; none if there are fewer than two, or too many to be
/// told apart. `price` says what that CPU time is.
pub fn draw(curves: &[Curve], quantity: &str, price: &str) -> Option<Picture> {
    let known: Vec<(&Curve, f64, f64)> = curves
        .iter()
        .filter(|curve| !curve.harness)
        .filter_map(|curve| Some((curve, curve.cpu_ps?, curve.series.quantile(0.5) as f64)))
        .collect();
    if known.len() < 2 || known.len() > MOST {
        return None;
    }
    let frame = Frame { width: 640.0, height: 420.0, left: 70.0, right: 560.0, top: 14.0, bottom: 366.0 };
    let x = Log::over(known.iter().map(|known| known.1), frame.left, frame.right);
    let times = known.iter().flat_map(|(curve, _, p50)| [*p50, curve.series.quantile(0.99) as f64]);
    let y = Log::over(times, frame.bottom, frame.top);
    let mut picture = frame.picture(format!("{quantity} against {price}, {} variants", known.len()));
    frame.horizontal(&mut picture, &x.time_ticks(), &format!("{price} (logarithmic)"));
    frame.vertical(&mut picture, &y.time_ticks(), &format!("{quantity}, p50 to p99 (logarithmic)"));

    let mut front: Vec<&(&Curve, f64, f64)> = known
        .iter()
        .filter(|(_, cpu, p50)| !known.iter().any(|(_, other, quicker)| other < cpu && quicker < p50))
        .collect();
    front.sort_by(|a, b| a.1.total_cmp(&b.1));
    picture.push(polyline("front", front.iter().map(|(_, cpu, p50)| (x.at(*cpu), y.at(*p50)))));

    let mut taken: Vec<[f64; 4]> = known.iter().map(|(_, cpu, p50)| around(x.at(*cpu), y.at(*p50))).collect();
    for (curve, cpu, p50) in &known {
        let p99 = curve.series.quantile(0.99) as f64;
        let (across, down) = (x.at(*cpu), y.at(*p50));
        let title = format!(
            "{}: p50 {}, p99 {}, CPU {}, {} samples",
            curve.name,
            time(*p50),
            time(p99),
            time(*cpu),
            count(curve.series.count)
        );
        let mut variant = group(curve)
            .titled(&title)
            .child(line(&format!("{} hair solid", stroke(curve)), across, down, across, y.at(p99)))
            .child(mark(curve, across, down));
        let name = cut(&curve.name, 150.0);
        if let Some((left, base)) = free_place(&mut taken, across, down, &name, &frame) {
            variant.push(label(left, base, &name));
        }
        picture.push(variant);
    }
    Some(picture)
}

fn around(x: f64, y: f64) -> [f64; 4] {
    [x - 5.0, y - 5.0, x + 5.0, y + 5.0]
}

/// Where a name finds room beside its mark: right, left, above, below; none where others stand
/// everywhere (the mark's title still tells it).
fn free_place(taken: &mut Vec<[f64; 4]>, x: f64, y: f64, name: &str, frame: &Frame) -> Option<(f64, f64)> {
    let long = name.chars().count() as f64 * LETTER;
    let places = [
        (x + 8.0, y + 4.0),
        (x - 8.0 - long, y + 4.0),
        (x + 6.0, y - 8.0),
        (x + 6.0, y + 16.0),
        (x - long - 4.0, y - 8.0),
        (x - long - 4.0, y + 16.0),
    ];
    let (left, base) = places.into_iter().find(|(left, base)| {
        // A name of wide letters is longer by one of them.
        let inside = *left > frame.left
            && left + long + LETTER < frame.width
            && *base > frame.top + 10.0
            && *base < frame.bottom;
        let free = |other: &[f64; 4]| {
            left + long < other[0] || *left > other[2] || base + 3.0 < other[1] || base - 11.0 > other[3]
        };
        inside && taken.iter().all(free)
    })?;
    taken.push([left, base - 11.0, left + long, base + 3.0]);
    Some((left, base))
}

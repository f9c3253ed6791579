// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency against the gap between notifications: what a longer sleep costs.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::{Log, Tick};
use super::svg::{Element, Picture, tenths};
use crate::view::unit::{count, time};

/// One mechanism over its gaps.
#[derive(Debug)]
pub struct Line<'curves> {
    /// How it is drawn and called.
    pub look: Curve<'curves>,
    /// Gap in picoseconds (0 is back to back) and the samples at it, by ascending gap.
    pub points: Vec<(f64, &'curves crate::view::figures::Distribution)>,
}

/// Draws it; none where there are fewer than two gaps.
pub fn draw(lines: &[Line], quantity: &str) -> Option<Picture> {
    let mut gaps: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.dedup();
    if gaps.len() < 2 {
        return None;
    }
    let looks: Vec<&Curve> = lines.iter().map(|line| &line.look).collect();
    let frame = Frame::with_legend(&looks);
    // No gap has no place on a logarithmic axis: gaps stand side by side like words, which they are to a planner.
    let step = (frame.right - frame.left - 60.0) / (gaps.len() - 1) as f64;
    let place = |gap: f64| {
        let index = gaps.iter().position(|known| *known == gap).unwrap_or(0);
        frame.left + 30.0 + index as f64 * step
    };
    let times = lines
        .iter()
        .flat_map(|line| &line.points)
        .flat_map(|(_, series)| [series.quantile(0.5), series.quantile(0.99)]);
    let y = Log::over(times.map(|ps| ps as f64), frame.bottom, frame.top);
    let ticks: Vec<Tick> = gaps
        .iter()
        .map(|&gap| Tick { at: place(gap), label: if gap == 0.0 { "none".to_owned() } else { time(gap) } })
        .collect();
    let mut picture = frame.picture(format!("{quantity} against the gap, {} mechanisms", lines.len()));
    frame.horizontal(&mut picture, &ticks, "gap between notifications (time)");
    frame.vertical(&mut picture, &y.time_ticks(), &format!("{quantity}, p50 and p99 (logarithmic)"));
    for line in lines {
        let path = |q: f64| {
            let corners: Vec<String> = line
                .points
                .iter()
                .map(|(gap, series)| {
                    format!("{},{}", tenths(place(*gap)), tenths(y.at(series.quantile(q) as f64)))
                })
                .collect();
            Element::new("polyline").with("points", &corners.join(" "))
        };
        let class = stroke(&line.look);
        let mut arm = group(&line.look)
            .child(path(0.5).with("class", &class))
            .child(path(0.99).with("class", &format!("{class} hair")));
        for (gap, series) in &line.points {
            let p50 = series.quantile(0.5) as f64;
            let title = format!(
                "{}, gap {}: p50 {}, p99 {}, {} samples",
                line.look.name,
                time(*gap),
                time(p50),
                time(series.quantile(0.99) as f64),
                count(series.count)
            );
            arm.push(mark(&line.look, place(*gap), y.at(p50)).titled(&title));
        }
        picture.push(arm);
    }
    frame.legend(&mut picture, &looks);
    Some(picture)
}

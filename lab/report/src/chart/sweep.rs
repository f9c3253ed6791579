// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times against what is varied on purpose: the gap between
//! notifications, the number of receivers or of tasks.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::{Log, Tick};
use super::svg::{Picture, polyline};
use crate::figures::Distribution;
use crate::unit::{count, time};

/// One mechanism over all values.
#[derive(Debug)]
pub struct SweepCurve<'curves> {
    pub look: Curve<'curves>,
    /// Value, how it is said, and the samples at it, by ascending value.
    pub points: Vec<(f64, String, &'curves Distribution)>,
}

/// Draws it; none where there are fewer than two values. `along` is
/// the title of the axis of values, with its unit.
pub fn draw(lines: &[SweepCurve], quantity: &str, along: &str) -> Option<Picture> {
    let mut values: Vec<(f64, &str)> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(value, said, _)| (*value, said.as_str())))
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values.dedup_by_key(|value| value.0);
    if values.len() < 2 {
        return None;
    }
    let looks: Vec<&Curve> = lines.iter().map(|line| &line.look).collect();
    let frame = Frame::with_legend(&looks);
    // No gap has no place on a logarithmic axis: values stand side by
    // side like words, which they are to a planner.
    let step = (frame.right - frame.left - 60.0) / (values.len() - 1) as f64;
    let place = |value: f64| {
        let index = values.iter().position(|known| known.0 == value).unwrap_or(0);
        frame.left + 30.0 + index as f64 * step
    };
    // Labels are no wider than some 60 units; where values stand closer, only some of them are said.
    let every = (60.0 / step).ceil().max(1.0) as usize;
    let times = lines
        .iter()
        .flat_map(|line| &line.points)
        .flat_map(|(.., series)| [0.5, 0.99].map(|q| series.percentile(q)));
    let y = Log::over(times.flatten().map(|ps| ps as f64), frame.bottom, frame.top);
    let ticks: Vec<Tick> = values
        .iter()
        .enumerate()
        .map(|(index, (value, said))| Tick {
            at: place(*value),
            label: if index % every == 0 { (*said).to_owned() } else { String::new() },
        })
        .collect();
    let mut picture = frame.picture(format!("{quantity} against {along}, {} lines", lines.len()));
    frame.horizontal(&mut picture, &ticks, along);
    frame.vertical(&mut picture, &y.time_ticks(), &format!("{quantity}, p50 and p99 (logarithmic)"));
    for line in lines {
        let path = |class: &str, q: f64| {
            let places = line
                .points
                .iter()
                .filter_map(|(value, _, series)| Some((place(*value), y.at(series.percentile(q)? as f64))));
            polyline(class, places)
        };
        let class = stroke(&line.look);
        let mut variant =
            group(&line.look).child(path(&class, 0.5)).child(path(&format!("{class} hair"), 0.99));
        for (value, said, series) in &line.points {
            let p50 = series.quantile(0.5) as f64;
            let title = format!(
                "{}, at {said}: p50 {}, p99 {}, {} samples",
                line.look.name,
                time(p50),
                series.told(0.99),
                count(series.count)
            );
            variant.push(mark(&line.look, place(*value), y.at(p50)).titled(&title));
        }
        picture.push(variant);
    }
    frame.legend(&mut picture, &looks);
    Some(picture)
}

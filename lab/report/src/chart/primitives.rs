// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's primitive costs over the run: a primitive cost that
//! moves takes every figure with it.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{COLORS, mark, stroke};
use super::scale::{Linear, Log};
use super::svg::{Picture, polyline};
use crate::extra::PrimitiveLine;
use crate::figures::Distribution;
use crate::unit::time;

/// Draws the primitive costs with more than one reading; none where
/// there is no such primitive cost.
pub fn draw(primitives: &[PrimitiveLine]) -> Option<Picture> {
    let primitives: Vec<&PrimitiveLine> =
        primitives.iter().filter(|primitive| primitive.medians.len() > 1).collect();
    let moments = || primitives.iter().flat_map(|primitive| primitive.medians.iter().map(|median| median.0));
    let (begin, end) = (moments().min()?, moments().max()?);
    let nothing = Distribution::default();
    let looks: Vec<Curve> = primitives
        .iter()
        .enumerate()
        .map(|(index, primitive)| Curve {
            id: format!("primitive cost-{index}"),
            name: primitive.name.replace('-', " "),
            color: index % COLORS,
            harness: false,
            series: &nothing,
            cpu_ps: None,
        })
        .collect();
    let looks: Vec<&Curve> = looks.iter().collect();
    let frame = Frame::with_legend(&looks);
    let seconds = |unix_ns: u64| (unix_ns - begin) as f64 / 1e9;
    let x = Linear::new(seconds(end), frame.left, frame.right - 10.0);
    let y = Log::over(
        primitives.iter().flat_map(|primitive| primitive.medians.iter().map(|median| median.1)),
        frame.bottom,
        frame.top,
    );
    let mut picture =
        frame.picture(format!("{} primitive costs of the machine over the run", primitives.len()));
    let show = crate::wording::four_digits;
    frame.horizontal(&mut picture, &x.ticks(show), "time since the first reading, s");
    frame.vertical(&mut picture, &y.time_ticks(), "median of the primitive cost (logarithmic)");
    for (primitive, look) in primitives.iter().zip(&looks) {
        let place = |&(at, ps): &(u64, f64)| (x.at(seconds(at)), y.at(ps));
        let mut variant = group(look).child(polyline(&stroke(look), primitive.medians.iter().map(place)));
        for median in &primitive.medians {
            let (across, down) = place(median);
            let title = format!("{}: {} after {} s", look.name, time(median.1), show(seconds(median.0)));
            variant.push(mark(look, across, down).titled(&title));
        }
        picture.push(variant);
    }
    frame.legend(&mut picture, &looks);
    Some(picture)
}

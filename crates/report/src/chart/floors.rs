// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's floors over the run: a floor that moves takes every figure with it.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{COLORS, mark, stroke};
use super::scale::{Linear, Log};
use super::svg::{Element, Picture, tenths};
use crate::extra::FloorLine;
use crate::figures::Distribution;
use crate::unit::time;

/// Draws the floors with more than one reading; none where there is no such floor.
pub fn draw(floors: &[FloorLine]) -> Option<Picture> {
    let floors: Vec<&FloorLine> = floors.iter().filter(|floor| floor.medians.len() > 1).collect();
    let begin = floors.iter().flat_map(|floor| floor.medians.iter().map(|median| median.0)).min()?;
    let end = floors.iter().flat_map(|floor| floor.medians.iter().map(|median| median.0)).max()?;
    let nothing = Distribution::default();
    let looks: Vec<Curve> = floors
        .iter()
        .enumerate()
        .map(|(index, floor)| Curve {
            id: format!("floor-{index}"),
            name: floor.name.replace('-', " "),
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
        floors.iter().flat_map(|floor| floor.medians.iter().map(|median| median.1)),
        frame.bottom,
        frame.top,
    );
    let mut picture = frame.picture(format!("{} floors of the machine over the run", floors.len()));
    let show = |value: f64| crate::wording::four_digits(value);
    frame.horizontal(&mut picture, &x.ticks(show), "time since the first reading, s");
    frame.vertical(&mut picture, &y.time_ticks(), "median of the floor (logarithmic)");
    for (floor, look) in floors.iter().zip(&looks) {
        let place = |&(at, ps): &(u64, f64)| (x.at(seconds(at)), y.at(ps));
        let corners: Vec<String> = floor
            .medians
            .iter()
            .map(place)
            .map(|(across, down)| format!("{},{}", tenths(across), tenths(down)))
            .collect();
        let mut arm = group(look)
            .child(Element::new("polyline").with("class", &stroke(look)).with("points", &corners.join(" ")));
        for median in &floor.medians {
            let (across, down) = place(median);
            let title = format!("{}: {} after {} s", look.name, time(median.1), show(seconds(median.0)));
            arm.push(mark(look, across, down).titled(&title));
        }
        picture.push(arm);
    }
    frame.legend(&mut picture, &looks);
    Some(picture)
}

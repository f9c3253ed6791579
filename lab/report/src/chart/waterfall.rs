// SPDX-License-Identifier: MIT OR Apache-2.0
//! One wake as a waterfall: a bar for each stage, each beginning where the one before ended.

use super::frame::Frame;
use super::palette::COLORS;
use super::scale::Linear;
use super::svg::{Element, Picture, cut, label_as};
use crate::unit::time;
use doorbell_results::anatomy::{Mark, Wake};

const ROW: f64 = 24.0;

/// Draws `wake`; `title` stands above it.
pub fn draw(wake: &Wake, title: &str) -> Picture {
    let stages: Vec<(Mark, i64, i64)> = wake.stages().collect();
    let whole = wake.whole_ps() as f64;
    let (width, left, right, top) = (760.0, 230.0, 660.0, 40.0);
    let bottom = top + stages.len() as f64 * ROW + 4.0;
    let x = Linear::new(whole, left, right);
    let sentence = format!("{title}: {} stages, {} in all", stages.len(), time(whole));
    let mut picture = Picture::new(width, bottom + 44.0, sentence);
    picture.push(label_as("head", 12.0, 22.0, &cut(title, width - 24.0)));
    let frame = Frame { width, height: bottom + 44.0, left, right, top: top - 4.0, bottom };
    frame.horizontal(&mut picture, &x.ticks(time), "time since the notifier's stamp");
    for (index, (mark, from, to)) in stages.into_iter().enumerate() {
        let y = top + index as f64 * ROW;
        let (start, end) = (x.at(from as f64), x.at(to as f64));
        let took = time(to.saturating_sub(from).max(0) as f64);
        let on = wake.marks.iter().find(|passed| passed.mark == mark).and_then(|passed| passed.cpu);
        let on = on.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
        let colour = Mark::ALL.iter().position(|known| *known == mark).unwrap_or(0) % COLORS;
        let bar = Element::new("rect")
            .with("class", &format!("area c{colour}"))
            .at("x", start)
            .at("y", y + 3.0)
            .at("width", (end - start).max(1.0))
            .at("height", ROW - 6.0);
        let row = Element::new("g")
            .titled(&format!("{}{on}: {took}, seen by {}", mark.stage(), mark.source()))
            .child(label_as("end", left - 10.0, y + 16.0, &cut(mark.stage(), left - 20.0)))
            .child(bar)
            .child(label_as("tick end", width - 12.0, y + 16.0, &took));
        picture.push(row);
    }
    picture
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frame of a chart: paper, grid, axes with their titles, and the legend.

use super::curve::Curve;
use super::palette;
use super::scale::Tick;
use super::svg::{Element, LETTER, Path, Picture, cut, label, label_as, line};

/// The field inside the axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// The field of a chart with two axes, 640 units wide; the legend
    /// of `names` finds its room below.
    pub(super) fn with_legend(names: &[&Curve]) -> Self {
        let mut frame =
            Self { width: 640.0, height: 380.0, left: 70.0, right: 612.0, top: 14.0, bottom: 330.0 };
        frame.height += frame.legend_rows(names) as f64 * LEGEND_ROW;
        frame
    }

    /// The field of a chart with a row for each variant, `rows` units high, below `top`.
    pub(super) fn of_rows(left: f64, top: f64, rows: f64) -> Self {
        let bottom = top + rows;
        Self { width: 640.0, height: bottom + 56.0, left, right: 612.0, top, bottom }
    }

    /// An empty picture of this size.
    pub(super) fn picture(&self, sentence: impl Into<String>) -> Picture {
        Picture::new(self.width, self.height, sentence)
    }

    /// Marks, grid and title below the field.
    pub(super) fn horizontal(&self, picture: &mut Picture, ticks: &[Tick], title: &str) {
        grid(picture, ticks, |at| [[at, self.top], [at, self.bottom]]);
        for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
            picture.push(label_as("tick middle", tick.at, self.bottom + 17.0, &tick.label));
        }
        picture.push(line("axis", self.left, self.bottom, self.right, self.bottom));
        let middle = (self.left + self.right) / 2.0;
        picture.push(label_as("axis-title middle", middle, self.bottom + 37.0, title));
    }

    /// Marks, grid and title left of the field.
    pub(super) fn vertical(&self, picture: &mut Picture, ticks: &[Tick], title: &str) {
        grid(picture, ticks, |at| [[self.left, at], [self.right, at]]);
        for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
            picture.push(label_as("tick end", self.left - 7.0, tick.at + 4.0, &tick.label));
        }
        picture.push(line("axis", self.left, self.top, self.left, self.bottom));
        let middle = (self.top + self.bottom) / 2.0;
        picture.push(
            label_as("axis-title middle", 14.0, middle, title)
                .with("transform", &format!("rotate(-90 14 {middle:.0})")),
        );
    }

    /// The names of the curves below the field, each with its colour, dashes and mark.
    pub(super) fn legend(&self, picture: &mut Picture, curves: &[&Curve]) {
        let column = (self.right - self.left) / self.legend_columns(curves) as f64;
        let first = self.bottom + 58.0;
        for (index, curve) in curves.iter().enumerate() {
            let across = (index % self.legend_columns(curves)) as f64;
            let down = (index / self.legend_columns(curves)) as f64;
            let (x, y) = (self.left + across * column, first + down * LEGEND_ROW);
            let entry = group(curve)
                .with("class", "key")
                .titled(&curve.name)
                .child(line(&palette::stroke(curve), x, y - 4.0, x + 22.0, y - 4.0))
                .child(palette::mark(curve, x + 11.0, y - 4.0))
                .child(label(x + 28.0, y, &cut(&curve.name, column - 34.0)));
            picture.push(entry);
        }
    }

    fn legend_columns(&self, curves: &[&Curve]) -> usize {
        let longest = curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0) as f64;
        let room = self.right - self.left;
        ((room / (longest * LETTER + 40.0)) as usize).clamp(1, 4)
    }

    fn legend_rows(&self, curves: &[&Curve]) -> usize {
        curves.len().div_ceil(self.legend_columns(curves))
    }
}

const LEGEND_ROW: f64 = 18.0;

/// The lines of a grid, each between the ends of its tick: those with
/// a label, and fainter those without.
pub(super) fn grid(picture: &mut Picture, ticks: &[Tick], ends: impl Fn(f64) -> [[f64; 2]; 2]) {
    for (class, labelled) in [("grid faint", false), ("grid", true)] {
        let mut lines =
            ticks.iter().filter(|tick| tick.label.is_empty() != labelled).map(|tick| ends(tick.at));
        let Some([from, to]) = lines.next() else { continue };
        let mut path = Path::from(from[0], from[1]);
        path.line(to[0], to[1]);
        for [from, to] in lines {
            path.jump(from[0], from[1]);
            path.line(to[0], to[1]);
        }
        picture.push(path.element(class));
    }
}

/// What belongs to one variant: hiding a variant hides every element with its name.
pub(super) fn group(curve: &Curve) -> Element {
    Element::new("g").with("data-variant", &curve.id)
}

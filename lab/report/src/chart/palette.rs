// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colours, dashes and marks: no two variants differ by colour alone.

use super::curve::Curve;
use super::svg::{Element, tenths};

/// Colours that variants take in turn.
pub const COLORS: usize = 8;

/// The style sheet of every chart, for light and dark.
///
/// The hues are those of Okabe and Ito (Color Universal Design, 2008), told apart with every kind
/// of colour blindness; darkened on light paper and lightened on dark until each has a contrast of
/// at least 3 : 1 (WCAG 2.1, 1.4.11).
pub const STYLE: &str = include_str!("style.css");

/// The class of a stroke of this variant.
pub(super) fn stroke(curve: &Curve) -> String {
    if curve.harness { "line harness".to_owned() } else { format!("line c{}", curve.color % COLORS) }
}

/// The class of an area of this variant.
pub(super) fn fill(curve: &Curve) -> String {
    if curve.harness { "area harness".to_owned() } else { format!("area c{}", curve.color % COLORS) }
}

/// The mark of this variant at a place.
pub(super) fn mark(curve: &Curve, x: f64, y: f64) -> Element {
    let shape = if curve.harness { Shape::Cross } else { Shape::ALL[curve.color % Shape::ALL.len()] };
    shape.at(x, y).with("class", &fill(curve))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Cross,
}

impl Shape {
    /// Shapes of variants, in the order of the colours.
    const ALL: [Self; 5] = [Self::Circle, Self::Square, Self::Triangle, Self::Diamond, Self::TriangleDown];

    /// The shape around a place, about 8 units wide.
    pub(super) fn at(self, x: f64, y: f64) -> Element {
        let points = |corners: &[(f64, f64)]| {
            let text: Vec<String> =
                corners.iter().map(|(dx, dy)| format!("{},{}", tenths(x + dx), tenths(y + dy))).collect();
            Element::new("polygon").with("points", &text.join(" "))
        };
        match self {
            Self::Circle => Element::new("circle").at("cx", x).at("cy", y).at("r", 4.0),
            Self::Square => points(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
            Self::Triangle => points(&[(0.0, -4.8), (4.4, 3.4), (-4.4, 3.4)]),
            Self::Diamond => points(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
            Self::TriangleDown => points(&[(0.0, 4.8), (4.4, -3.4), (-4.4, -3.4)]),
            Self::Cross => points(&[
                (-1.3, -4.5),
                (1.3, -4.5),
                (1.3, -1.3),
                (4.5, -1.3),
                (4.5, 1.3),
                (1.3, 1.3),
                (1.3, 4.5),
                (-1.3, 4.5),
                (-1.3, 1.3),
                (-4.5, 1.3),
                (-4.5, -1.3),
                (-1.3, -1.3),
            ]),
        }
    }
}

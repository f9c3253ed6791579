// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a fleet: a square for each node, thousands on one
//! screen, and what `fleet verdict` says.

use std::collections::HashSet;

use askama::Template;

use super::{ReportError, policy};
use crate::chart::palette;
use crate::fleet::{LeftOut, SILENT, subsections};
use crate::machines;
use crate::subsection::Subsection;
use crate::unit::plain;
use crate::wording::counted;
use doorbell_results::record::verdict::Status;
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::fleet::Judged;

const STYLE: &str =
    concat!(include_str!("../../templates/report.css"), include_str!("../../templates/fleet.css"));
const SCRIPT: &str = include_str!("../../templates/fleet.js");

/// Width of the squares of a type, in the page's own pixels.
const WIDTH: usize = 1200;

/// Height that the squares of all types share: one screen.
const HEIGHT: usize = 640;

/// Sides that a square may have.
const SIDES: std::ops::RangeInclusive<usize> = 5..=24;

#[derive(Debug, Template)]
#[template(path = "fleet.html")]
struct Page {
    title: String,
    version: &'static str,
    policy: String,
    style: String,
    script: &'static str,
    lead: Vec<String>,
    how: String,
    /// Classes of squares that the page has, and what they mean.
    legend: Vec<(&'static str, &'static str)>,
    kinds: Vec<Kind>,
    told: Vec<Subsection>,
}

/// The nodes of one type.
#[derive(Debug)]
struct Kind {
    name: String,
    nodes: String,
    width: usize,
    height: usize,
    squares: Vec<Square>,
}

#[derive(Debug)]
struct Square {
    x: usize,
    y: usize,
    side: usize,
    class: &'static str,
    /// All that is known of it, in a line.
    told: String,
    link: Option<String>,
}

/// What a square's colour means. The first that holds of a node is its own.
const LEGEND: [(&str, &str); 9] = [
    ("failed", "failed"),
    ("silent", "no result"),
    ("inconclusive", "inconclusive"),
    ("odd", "odd beside its type"),
    ("quick", "shorter than its type's middle by 5 % or more"),
    ("same", "as long, within 5 %"),
    ("longer", "longer by 5 % or more"),
    ("long", "by half or more"),
    ("unknown", "too few of its type to compare"),
];

/// How much longer than the middle one is drawn darkest.
const LONG: f64 = 1.5;

fn class(status: Status, odd: bool, times: Option<f64>) -> &'static str {
    match (status, times) {
        (Status::Failed, _) => "failed",
        (Status::Inconclusive, _) => "inconclusive",
        _ if odd => "odd",
        (_, None) => "unknown",
        (_, Some(times)) if times >= LONG => "long",
        (_, Some(times)) if times.ln() >= RELEVANT.ln_1p() => "longer",
        (_, Some(times)) if times.ln() <= -RELEVANT.ln_1p() => "quick",
        _ => "same",
    }
}

/// The page. `link` says where a node's own page is, by its place in `fleet.nodes`.
pub fn page(
    fleet: &Judged,
    left_out: &[LeftOut],
    link: impl Fn(usize) -> Option<String>,
) -> Result<String, ReportError> {
    let odd: HashSet<usize> = fleet.odd.iter().map(|odd| odd.node).collect();
    let squares = fleet.nodes.iter().enumerate().map(|(place, node)| {
        let times = fleet.times[place];
        let class = class(node.status, odd.contains(&place), times);
        let mut told = format!("{}: {}", node.name, node.status.name());
        if let Some(times) = times {
            told.push_str(&format!(", {} times as long as its type", plain(times)));
        }
        if !node.reason.is_empty() {
            told.push_str(&format!(", {}", node.reason));
        }
        (machines::name(&node.of), Square { x: 0, y: 0, side: 0, class, told, link: link(place) })
    });
    let silent = fleet.silent.iter().map(|name| {
        let told = format!("{name}: {SILENT}");
        (SILENT.to_owned(), Square { x: 0, y: 0, side: 0, class: "silent", told, link: None })
    });
    let mut kinds: Vec<(String, Vec<Square>)> = Vec::new();
    for (of, square) in squares.chain(silent) {
        match kinds.iter_mut().find(|(name, _)| *name == of) {
            Some((_, squares)) => squares.push(square),
            None => kinds.push((of, vec![square])),
        }
    }
    let side = side(&kinds.iter().map(|(_, squares)| squares.len()).collect::<Vec<_>>());
    let seen =
        |class: &str| kinds.iter().flat_map(|(_, squares)| squares).any(|square| square.class == class);
    let legend = LEGEND.into_iter().filter(|(class, _)| seen(class)).collect();
    let mut told = subsections(fleet, left_out);
    let first = told.remove(0);
    let style = format!("{}{STYLE}", palette::STYLE);
    let policy = policy(&style, SCRIPT);
    let page = Page {
        title: first.title,
        version: env!("CARGO_PKG_VERSION"),
        policy,
        style,
        script: SCRIPT,
        lead: first.lead,
        how: "Point at one for what is known of it; those that have a page of their own are links."
            .to_owned(),
        legend,
        kinds: kinds.into_iter().map(|(name, squares)| Kind::of(name, squares, side)).collect(),
        told,
    };
    Ok(page.render()?)
}

/// The largest side with which the squares of all types fit the
/// screen, each type in rows of its own.
fn side(nodes: &[usize]) -> usize {
    let high = |side: usize| nodes.iter().map(|nodes| nodes.div_ceil(WIDTH / side) * side).sum::<usize>();
    SIDES.rev().find(|side| high(*side) <= HEIGHT).unwrap_or(*SIDES.start())
}

impl Kind {
    fn of(name: String, mut squares: Vec<Square>, side: usize) -> Self {
        let columns = WIDTH / side;
        for (place, square) in squares.iter_mut().enumerate() {
            (square.x, square.y, square.side) = (place % columns * side, place / columns * side, side - 1);
        }
        let height = squares.len().div_ceil(columns) * side;
        Self { name, nodes: counted(squares.len() as u64, "node"), width: WIDTH, height, squares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_nodes_fit_a_screen_and_a_hundred_thousand_scroll() {
        assert_eq!(side(&[16]), 24);
        let side_of_many = side(&[9_000, 1_000]);
        assert!((5..=8).contains(&side_of_many));
        assert!(9_000_usize.div_ceil(WIDTH / side_of_many) * side_of_many < HEIGHT);
        assert_eq!(side(&[100_000]), 5);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! SVG elements; all text is escaped on its way in.

use std::fmt::{self, Display, Write};

use crate::escaped::Escaped;

#[derive(Debug, Clone)]
pub struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: String::new() }
    }

    /// With an attribute of text.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        // Writing into a string cannot fail.
        let _ = write!(self.attributes, " {name}=\"{}\"", Escaped(value));
        self
    }

    /// With an attribute that is a length or a coordinate, to a tenth of a unit.
    #[must_use]
    pub fn at(self, name: &str, value: f64) -> Self {
        self.with(name, &tenths(value))
    }

    #[must_use]
    pub fn child(mut self, child: Self) -> Self {
        self.push(child);
        self
    }

    pub fn push(&mut self, child: Self) {
        let _ = write!(self.content, "{child}");
    }

    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        let _ = write!(self.content, "{}", Escaped(text));
        self
    }

    /// With a title: what a browser shows on hovering, without any script.
    #[must_use]
    pub fn titled(self, title: &str) -> Self {
        self.child(Self::new("title").text(title))
    }
}

impl Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let Self { name, attributes, content } = self;
        if content.is_empty() {
            write!(out, "<{name}{attributes}/>")
        } else {
            write!(out, "<{name}{attributes}>{content}</{name}>")
        }
    }
}

/// A coordinate, to a tenth of a unit.
pub(super) fn tenths(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A path that is written in steps from place to place: a third as long as one of places.
#[derive(Debug)]
pub(super) struct Path {
    text: String,
    /// Where it is, in tenths of a unit: as it was rounded, so that errors do not add up.
    at: [i64; 2],
}

impl Path {
    pub(super) fn from(x: f64, y: f64) -> Self {
        let mut path = Self { text: String::new(), at: [0, 0] };
        path.jump(x, y);
        path
    }

    /// Goes on elsewhere, drawing nothing.
    pub(super) fn jump(&mut self, x: f64, y: f64) {
        self.at = [in_tenths(x), in_tenths(y)];
        self.text.push_str(&format!("M{} {}", tenths(x), tenths(y)));
    }

    pub(super) fn line(&mut self, x: f64, y: f64) {
        let to = [in_tenths(x), in_tenths(y)];
        let [across, down] = [step(to[0] - self.at[0]), step(to[1] - self.at[1])];
        self.at = to;
        match (across.as_str(), down.as_str()) {
            ("0", "0") => {}
            (_, "0") => self.text.push_str(&format!("h{across}")),
            ("0", _) => self.text.push_str(&format!("v{down}")),
            _ => {
                let apart = if down.starts_with('-') { "" } else { " " };
                self.text.push_str(&format!("l{across}{apart}{down}"));
            }
        }
    }

    /// Through all of `places`, less those that nobody would miss; nothing if there are none.
    pub(super) fn through(places: &[[f64; 2]]) -> Self {
        let mut path = Self { text: String::new(), at: [0, 0] };
        for (index, [x, y]) in needed(places).into_iter().enumerate() {
            if index == 0 { path.jump(x, y) } else { path.line(x, y) }
        }
        path
    }

    /// Across and then up or down, as a stair goes.
    pub(super) fn stair(&mut self, x: f64, y: f64) {
        let level = self.at[1] as f64 / 10.0;
        self.line(x, level);
        self.line(x, y);
    }

    pub(super) fn element(&self, class: &str) -> Element {
        Element::new("path").with("class", class).with("d", &self.text)
    }
}

/// How far a line may lie beside a place it leaves out: less than the half of its own width.
const BESIDE: f64 = 0.5;

/// The places between which straight lines pass all others within [`BESIDE`] (U. Ramer 1972; D. H.
/// Douglas, T. K. Peucker 1973).
fn needed(places: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let Some(last) = places.len().checked_sub(1) else { return Vec::new() };
    let mut keep = vec![false; places.len()];
    (keep[0], keep[last]) = (true, true);
    let mut spans = vec![(0, last)];
    while let Some((from, to)) = spans.pop() {
        let off = |index: usize| distance(places[index], places[from], places[to]);
        let farthest = (from + 1..to).max_by(|a, b| off(*a).total_cmp(&off(*b)));
        if let Some(index) = farthest.filter(|index| off(*index) > BESIDE) {
            keep[index] = true;
            spans.extend([(from, index), (index, to)]);
        }
    }
    places.iter().zip(keep).filter(|(_, keep)| *keep).map(|(place, _)| *place).collect()
}

/// Of a place from the straight line between two others.
fn distance(of: [f64; 2], from: [f64; 2], to: [f64; 2]) -> f64 {
    let [across, down] = [to[0] - from[0], to[1] - from[1]];
    let [x, y] = [of[0] - from[0], of[1] - from[1]];
    match across.hypot(down) {
        long if long > 0.0 => (across * y - down * x).abs() / long,
        _ => x.hypot(y),
    }
}

fn in_tenths(value: f64) -> i64 {
    (value * 10.0).round() as i64
}

/// A step of so many tenths, as short as it can be written: `-.5`, `12`, `1.3`.
fn step(of: i64) -> String {
    let sign = if of < 0 { "-" } else { "" };
    let (whole, part) = (of.unsigned_abs() / 10, of.unsigned_abs() % 10);
    match (whole, part) {
        (whole, 0) => format!("{}{whole}", if whole == 0 { "" } else { sign }),
        (0, part) => format!("{sign}.{part}"),
        (whole, part) => format!("{sign}{whole}.{part}"),
    }
}

#[derive(Debug, Clone)]
pub struct Picture {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

impl Picture {
    /// An empty picture, with the sentence that stands for it where it cannot be seen.
    pub fn new(width: f64, height: f64, label: impl Into<String>) -> Self {
        Self { width, height, label: label.into(), body: String::new() }
    }

    pub fn push(&mut self, element: Element) {
        let _ = write!(self.body, "{element}");
    }

    /// As a part of a page, whose style sheet has [`super::palette::STYLE`].
    pub fn inline(&self) -> String {
        self.render("")
    }

    /// As a file of its own, with its style inside.
    pub fn alone(&self) -> String {
        self.render(&format!(
            "<style>{}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>",
            super::palette::STYLE
        ))
    }

    fn render(&self, before: &str) -> String {
        let (width, height) = (tenths(self.width), tenths(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">{before}{}</svg>",
            Escaped(&self.label),
            self.body
        )
    }
}

/// Text at a place, flush left.
pub(super) fn label(x: f64, y: f64, text: &str) -> Element {
    Element::new("text").at("x", x).at("y", y).text(text)
}

/// Text with its class (see [`super::palette::STYLE`]).
pub(super) fn label_as(class: &str, x: f64, y: f64, text: &str) -> Element {
    Element::new("text").with("class", class).at("x", x).at("y", y).text(text)
}

pub(super) fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64) -> Element {
    Element::new("line").with("class", class).at("x1", x1).at("y1", y1).at("x2", x2).at("y2", y2)
}

/// A line through all of `places`.
pub(super) fn polyline(class: &str, places: impl IntoIterator<Item = (f64, f64)>) -> Element {
    let corners = places.into_iter().map(|(x, y)| format!("{},{}", tenths(x), tenths(y)));
    let points = corners.collect::<Vec<_>>().join(" ");
    Element::new("polyline").with("class", class).with("points", &points)
}

/// `text` cut to about `room` units at the size of the charts' type;
/// the whole of it belongs into a title.
pub(super) fn cut(text: &str, room: f64) -> String {
    let letters = (room / LETTER).max(1.0) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

/// Mean advance of a letter in the charts' type, 12 units high:
/// sans-serif faces lie between 0.5 and 0.58 of it.
pub(super) const LETTER: f64 = 6.6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        let hostile = "</text></svg><script>alert('\"&')</script>\u{1b}";
        let element = Element::new("text").with("data-variant", hostile).text(hostile).to_string();
        let document = roxmltree::Document::parse(&element).expect("well-formed");
        let root = document.root_element();
        assert_eq!(root.children().filter(|node| node.is_element()).count(), 0);
        assert_eq!(root.text().map(|text| text.replace("\\u{1b}", "\u{1b}")), Some(hostile.to_owned()));
    }

    #[test]
    fn coordinates_have_a_tenth_and_no_needless_zero() {
        assert_eq!(tenths(12.0), "12");
        assert_eq!(tenths(12.34), "12.3");
        assert_eq!(tenths(-0.26), "-0.3");
    }

    #[test]
    fn a_path_of_steps_ends_where_its_places_say() {
        let mut path = Path::from(10.0, 20.0);
        path.line(10.54, 20.0);
        path.stair(11.04, 18.0);
        path.line(11.04, 18.01);
        path.line(9.0, 20.5);
        assert_eq!(path.element("line").to_string(), "<path class=\"line\" d=\"M10 20h.5h.5v-2l-2 2.5\"/>");
        // A thousand steps of 0.04: none is seen, and none is lost.
        let mut path = Path::from(0.0, 0.0);
        (1..=1000).for_each(|index| path.line(f64::from(index) * 0.04, 0.0));
        assert_eq!(path.at, [400, 0]);
    }

    #[test]
    fn a_path_keeps_its_corners_and_leaves_out_what_lies_on_the_way() {
        let stair = [[0.0, 100.0], [10.0, 100.0], [10.0, 40.0], [50.0, 40.0], [50.0, 0.0]];
        let path = |places: &[[f64; 2]]| Path::through(places).element("").to_string();
        assert!(path(&stair).contains("M0 100h10v-60h40v-40"), "{}", path(&stair));
        let slope: Vec<[f64; 2]> =
            (0..=1000).map(|index| [f64::from(index) * 0.5, f64::from(index % 2) * 0.3]).collect();
        assert!(path(&slope).contains("M0 0h500\""), "{}", path(&slope));
        assert!(path(&[]).contains("d=\"\""));
        assert!(path(&[[3.0, 4.0]]).contains("d=\"M3 4\""));
    }

    #[test]
    fn long_names_are_cut_by_letters_not_by_bytes() {
        assert_eq!(cut("ééééé", 2.0 * LETTER), "é…");
        assert_eq!(cut("ab", 1000.0), "ab");
    }
}

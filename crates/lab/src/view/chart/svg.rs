// SPDX-License-Identifier: MIT OR Apache-2.0
//! SVG elements; all text is escaped on its way in.

use std::fmt::{self, Display, Write};

/// An element.
#[derive(Debug, Clone)]
pub struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    /// An element without attributes.
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

    /// With a child.
    #[must_use]
    pub fn child(mut self, child: Self) -> Self {
        self.push(child);
        self
    }

    /// Adds a child.
    pub fn push(&mut self, child: Self) {
        let _ = write!(self.content, "{child}");
    }

    /// With text inside.
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

/// Text that means nothing to a parser of XML or HTML.
struct Escaped<'text>(&'text str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                // No other control character may stand in XML 1.0, not even escaped.
                '\n' | '\t' => out.write_char(' ')?,
                letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                    out.write_char('\u{fffd}')?;
                }
                letter => out.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// A whole picture.
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

    /// Adds an element.
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

/// A straight line.
pub(super) fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64) -> Element {
    Element::new("line").with("class", class).at("x1", x1).at("y1", y1).at("x2", x2).at("y2", y2)
}

/// `text` cut to about `room` units at the size of the charts' type; the whole of it belongs into a title.
pub(super) fn cut(text: &str, room: f64) -> String {
    let letters = (room / LETTER).max(1.0) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

/// Mean advance of a letter in the charts' type, 12 units high: sans-serif faces lie between 0.5 and 0.58 of it.
pub(super) const LETTER: f64 = 6.6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        let hostile = "</text></svg><script>alert('\"&')</script>\u{1b}";
        let element = Element::new("text").with("data-arm", hostile).text(hostile).to_string();
        let document = roxmltree::Document::parse(&element).expect("well-formed");
        let root = document.root_element();
        assert_eq!(root.children().filter(|node| node.is_element()).count(), 0);
        assert_eq!(root.text().map(|text| text.replace('\u{fffd}', "\u{1b}")), Some(hostile.to_owned()));
    }

    #[test]
    fn coordinates_have_a_tenth_and_no_needless_zero() {
        assert_eq!(tenths(12.0), "12");
        assert_eq!(tenths(12.34), "12.3");
        assert_eq!(tenths(-0.26), "-0.3");
    }

    #[test]
    fn long_names_are_cut_by_letters_not_by_bytes() {
        assert_eq!(cut("ééééé", 2.0 * LETTER), "é…");
        assert_eq!(cut("ab", 1000.0), "ab");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table in Markdown.

use std::fmt::{Display, Formatter, Result};

#[derive(Clone, Debug)]
pub struct Table(String);

impl Table {
    /// With these heads; the column of one that begins with `>` holds numbers.
    pub fn new<H: AsRef<str>>(heads: impl IntoIterator<Item = H>) -> Self {
        let (mut names, mut rules) = (String::from("|"), String::from("|"));
        for head in heads {
            let head = head.as_ref();
            names += &format!(" {} |", head.trim_start_matches('>'));
            rules += if head.starts_with('>') { "---:|" } else { "---|" };
        }
        Self(format!("{names}\n{rules}\n"))
    }

    pub fn row<C: Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.0.push('|');
        for cell in cells {
            self.0 += &format!(" {cell} |");
        }
        self.0.push('\n');
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(&self.0)
    }
}

/// Four significant digits from 0.001 to below 10,000; from there on no decimals, and below 0.001
/// six.
pub fn digits(value: f64) -> String {
    let whole = if value > 0.0 { value.log10().floor() } else { 0.0 };
    format!("{value:.*}", (3.0 - whole).clamp(0.0, 6.0) as usize)
}

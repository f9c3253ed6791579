// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text between the tags and in the attributes of HTML, SVG and XML.

use std::fmt::{self, Display, Write};

use doorbell_results::written::letters;

/// Text that means nothing to a parser of XML or HTML, nor to a
/// terminal or a build server that is shown it, on one line.
pub(crate) struct Escaped<'text>(pub &'text str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        Markup.write(out, self.0)
    }
}

/// The same for templates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markup;

impl Markup {
    fn write(self, mut out: impl Write, text: &str) -> fmt::Result {
        for (letter, obeyed) in letters(text) {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                '\n' | '\t' => out.write_char(' ')?,
                // Control characters may not stand in XML 1.0, not even as references.
                '\u{fffe}' | '\u{ffff}' => out.write_char('\u{fffd}')?,
                letter if obeyed && letter.is_ascii_graphic() => write!(out, "&#{};", u32::from(letter))?,
                letter if obeyed => write!(out, "{}", letter.escape_unicode())?,
                letter => out.write_char(letter)?,
            }
        }
        Ok(())
    }
}

impl askama::filters::Escaper for Markup {
    fn write_escaped_str<W: Write>(&self, out: W, text: &str) -> fmt::Result {
        self.write(out, text)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the terminal can show: width, colour, Unicode.

use console::{Term, measure_text_width};
use doorbell_results::written::inert;

/// How text is to be laid out and painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns there are; [`Style::UNBOUNDED`] when nothing limits them.
    pub width: usize,
    /// Whether escape sequences for colour are written.
    pub color: bool,
    /// Whether characters beyond ASCII are written.
    pub unicode: bool,
}

/// What a piece of text is, and so how it is painted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// The head of a table, a title.
    #[default]
    Heading,
    Aside,
    /// The name of a warning.
    Warning,
    /// The name of an error: a hung, failed or implausible trial.
    Error,
}

impl Style {
    /// The width of what is no terminal: a file or a pipe may hold lines of any length.
    pub const UNBOUNDED: usize = usize::MAX;

    /// Plain ASCII of any width, as for a file read by a program.
    pub const PLAIN: Self = Self { width: Self::UNBOUNDED, color: false, unicode: false };

    /// The style of standard output: colour as `--color`, `NO_COLOR` and `TERM` settled it, the
    /// rest from the terminal and the locale.
    pub fn of_stdout() -> Self {
        let terminal = Term::stdout();
        let columns = terminal.size_checked().map(|(_, columns)| usize::from(columns));
        Self {
            color: console::colors_enabled(),
            ..Self::decide(terminal.is_term(), columns, |name| std::env::var(name).ok())
        }
    }

    /// The rule behind [`Style::of_stdout`].
    fn decide(terminal: bool, columns: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        // The first of these three that is set and not empty decides the character set (locale(7)).
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_lowercase();
        let unicode = locale.contains("utf-8") || locale.contains("utf8");
        let asked = set("COLUMNS").and_then(|text| text.parse().ok()).filter(|&columns| columns > 0);
        let unasked = if terminal { columns.unwrap_or(80) } else { Self::UNBOUNDED };
        Self { width: asked.unwrap_or(unasked), color: false, unicode }
    }

    /// Paints `text`.
    pub fn paint(&self, role: Role, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match role {
            Role::Heading => "1",
            Role::Aside => "2",
            Role::Warning => "33",
            Role::Error => "31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// `text` with nothing in it that a terminal would obey, in the characters this style may use.
    ///
    /// Result files come from anywhere: an escape sequence in a name must not reach the terminal.
    pub fn text(&self, text: &str) -> String {
        let text = inert(text);
        if self.unicode {
            return text;
        }
        text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
            if letter.is_ascii() {
                out.push(letter);
            } else {
                out.push_str(ascii(letter));
            }
            out
        })
    }

    /// `text` in lines no wider than the style, each after `indent` spaces.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let room = self.width.min(110).saturating_sub(indent).max(20);
        let mut lines = vec![String::new()];
        for word in self.text(text).split_whitespace() {
            let last = lines.len() - 1;
            let used = width(&lines[last]);
            if used > 0 && used + 1 + width(word) > room {
                lines.push(word.to_owned());
            } else {
                if used > 0 {
                    lines[last].push(' ');
                }
                lines[last].push_str(word);
            }
        }
        let indent = " ".repeat(indent);
        // A word that would be obeyed at the beginning of a line may come to stand there.
        let guard = |line: &str| if line.starts_with("::") { "'" } else { "" };
        lines.iter().map(|line| format!("{indent}{}{line}\n", guard(line))).collect()
    }
}

/// Columns that `text` takes.
pub fn width(text: &str) -> usize {
    measure_text_width(text)
}

fn ascii(letter: char) -> &'static str {
    match letter {
        'µ' | 'μ' => "u",
        '…' => "..",
        '·' | '—' | '–' | '−' | '─' => "-",
        '×' => "x",
        '→' => "->",
        '≤' => "<=",
        '≥' => ">=",
        '±' => "+-",
        '½' => "1/2",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '▁' | '▂' | '░' => ".",
        '▃' | '▄' | '▒' => ":",
        '▅' | '▆' | '▓' => "+",
        '▇' | '█' => "#",
        '▏' => "|",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(terminal: bool, variables: &[(&str, &str)]) -> Style {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Style::decide(terminal, Some(132), variable)
    }

    #[test]
    fn unicode_follows_the_first_locale_variable_that_is_set() {
        assert!(style(true, &[("LANG", "C.UTF-8")]).unicode);
        assert!(!style(true, &[("LC_ALL", "C"), ("LANG", "C.UTF-8")]).unicode);
        assert!(!style(true, &[]).unicode);
    }

    #[test]
    fn the_width_is_the_terminals_and_a_pipe_has_none() {
        assert_eq!(style(true, &[]).width, 132);
        assert_eq!(style(true, &[("COLUMNS", "60")]).width, 60);
        assert_eq!(style(false, &[]).width, Style::UNBOUNDED);
    }

    #[test]
    fn a_hostile_name_cannot_reach_the_terminal() {
        let hostile = "a\u{1b}[2J\u{7}\u{202e}b\nc";
        for unicode in [true, false] {
            let shown = Style { unicode, ..Style::PLAIN }.text(hostile);
            assert_eq!(shown, "a\\u{1b}[2J\\u{7}\\u{202e}b c");
        }
    }

    #[test]
    fn ascii_has_a_word_for_each_sign_the_views_use() {
        assert_eq!(Style::PLAIN.text("8 µs × 3 … ≥ 2"), "8 us x 3 .. >= 2");
    }
}

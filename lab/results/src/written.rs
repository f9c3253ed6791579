// SPDX-License-Identifier: MIT OR Apache-2.0
//! How times and other numbers are written in few letters.

/// A nanosecond figure as people write it: `10us`, `1ms`, `0`.
pub fn short(ns: u64) -> String {
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
    ];
    match units.into_iter().find(|(size, _)| ns >= *size && ns.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", ns / size),
        None if ns == 0 => "0".to_owned(),
        None => format!("{ns}ns"),
    }
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Unit {
    pub fn sign(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    pub fn ps(self) -> f64 {
        match self {
            Self::Nanoseconds => 1e3,
            Self::Microseconds => 1e6,
            Self::Milliseconds => 1e9,
            Self::Seconds => 1e12,
        }
    }

    /// The greatest unit of which `ps` holds at least one.
    pub fn of(ps: f64) -> Self {
        [Self::Seconds, Self::Milliseconds, Self::Microseconds]
            .into_iter()
            .find(|unit| ps >= unit.ps())
            .unwrap_or(Self::Nanoseconds)
    }
}

/// A time on its own, with its unit: three significant digits.
pub fn time(ps: f64) -> String {
    in_unit(ps, Unit::of(ps))
}

pub fn time_ns(ns: f64) -> String {
    time(ns * 1e3)
}

/// A time in a unit of choice.
pub fn in_unit(ps: f64, unit: Unit) -> String {
    let value = ps / unit.ps();
    let text = match value {
        // Three digits of what is less than one; a millionth is the
        // least that a unit has of the one above the next.
        value if value > 0.0 && value < 0.9995 => {
            format!("{value:.*}", (2 - value.log10().floor() as i32).clamp(2, 6) as usize)
        }
        value => three_digits(value, 2),
    };
    // A gap of exactly 10 µs is "10 µs": the zeros of a round figure say nothing.
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {}", unit.sign())
}

/// A rate, how many times as much, or another number without a unit of time: three digits, in
/// groups of three, by a power of ten where it is out of all proportion; `?` where it has no end.
pub fn plain(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "?".to_owned(),
        size if size >= 1e12 || (size > 0.0 && size < 1e-6) => format!("{value:.2e}"),
        _ => three_digits(value, 2),
    }
}

/// `value` with three digits and at most `finest` decimals; what has
/// more digits before the point ends in zeros.
pub fn three_digits(value: f64, finest: usize) -> String {
    let step = 10_f64.powi(value.abs().max(1.0).log10().floor() as i32 - 2);
    let value = if step > 1.0 && step.is_finite() { (value / step).round() * step } else { value };
    // What rounds up to the next power of ten has a digit more before the point.
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 3,
    };
    grouped(&format!("{value:.*}", decimals.min(finest)))
}

/// Groups the digits before the point by commas.
pub fn grouped(digits: &str) -> String {
    let (whole, rest) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let behind = whole.len() - index;
        if index > 0 && behind % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// Whether a terminal would obey `letter`, or would show the text around it in another order.
pub fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a build server would obey this line: GitHub's runner obeys `::error::` at its beginning,
/// and `##[error]` anywhere in it, as others do `##vso[` and `##teamcity[`.
pub fn is_command(line: &str) -> bool {
    line.trim_start().starts_with("::") || letters(line).any(|(letter, obeyed)| obeyed && !is_obeyed(letter))
}

/// The letters of `text`, and of each whether it would be obeyed
/// where it stands, by a terminal or by a build server.
///
/// Every writer passes what comes from elsewhere through this, and
/// shows such a letter in the way of its format.
pub fn letters(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut last = '\0';
    text.char_indices().map(move |(at, letter)| {
        let before = std::mem::replace(&mut last, letter);
        let opens = || {
            text[at + 1..].trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).starts_with('[')
        };
        (letter, is_obeyed(letter) || letter == '#' && before == '#' && opens())
    })
}

/// `text` on one line, with nothing in it that a terminal or a build server would obey.
///
/// Result files and names of processes come from anywhere, so every writer of text passes each of
/// their words through this.
pub fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    if text.trim_start().starts_with("::") {
        out.push('\'');
    }
    for (letter, obeyed) in letters(text) {
        match letter {
            '\n' | '\t' => out.push(' '),
            letter if obeyed => out.extend(letter.escape_unicode()),
            letter => out.push(letter),
        }
    }
    out
}

/// `value` as JSON in which whatever a terminal would obey is
/// escaped; a reader of JSON sees the same.
///
/// # Errors
/// As of `serde_json`: a map with keys that are no texts.
pub fn json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(escaped)
}

/// The same over several lines, for people.
///
/// # Errors
/// As of [`json`].
pub fn pretty_json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(escaped)
}

/// Outside of its texts JSON has no such letter but the ends of
/// lines, which inside of them are escaped already.
fn escaped(json: String) -> String {
    if !letters(&json).any(|(letter, obeyed)| obeyed && letter != '\n') {
        return json;
    }
    letters(&json).fold(String::with_capacity(json.len()), |mut out, (letter, obeyed)| {
        if obeyed && letter != '\n' {
            out.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            out.push(letter);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_or_a_build_server_would_obey_is_shown_instead() {
        assert_eq!(inert("a\u{1b}[2J\u{9b}\u{202e}b\r\nc"), "a\\u{1b}[2J\\u{9b}\\u{202e}b\\u{d} c");
        assert_eq!(
            ["::error::x", "a ##[error]", "###vso[x]", "a::b ## c", "\u{2028}"].map(inert),
            ["'::error::x", "a #\\u{23}[error]", "##\\u{23}vso[x]", "a::b ## c", "\\u{2028}"]
        );
        let text = "\u{7f}\u{9b}\u{202e}\n\" ##[error]";
        let written = pretty_json(&[text]).unwrap();
        assert!(letters(&written).all(|(letter, obeyed)| letter == '\n' || !obeyed), "{written:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&written).unwrap(), [text]);
    }

    /// "To sleep at once could cost 1.00 to 1402.68 times the least."
    #[test]
    fn a_multiple_has_three_digits_however_large() {
        let written = [0.02, 1.0, 1.356, 24.3, 138.74, 1402.68, 12_921.2].map(plain);
        assert_eq!(written, ["0.02", "1.00", "1.36", "24.3", "139", "1,400", "12,900"]);
    }

    /// "Could cost 1.00 to inf times the least", of an interval whose end nothing is known of.
    #[test]
    fn a_multiple_without_an_end_is_not_called_infinite() {
        assert_eq!(plain(f64::INFINITY), "?");
        // 309 digits, of a file whose figures nobody measured.
        assert_eq!([1e308, 5e-324, 0.0].map(plain), ["1.00e308", "4.94e-324", "0.00"]);
    }
}

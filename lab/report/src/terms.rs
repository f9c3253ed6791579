// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the words mean that stand at the head of a column, name a place or a percentile, or name a
//! part of a run: `doorbell explain`. In `terms.txt` the kind of word stands in brackets above its
//! words, each with its meaning in one line.

const TERMS: &str = include_str!("terms.txt");

/// The kind of each word, the word, and what it means. Case does not matter when one is looked up,
/// nor a blank where there is a dash.
pub fn terms() -> impl Iterator<Item = [&'static str; 3]> {
    let mut kind = "";
    TERMS.lines().filter_map(move |line| {
        kind = line.strip_prefix('[').map_or(kind, |line| line.trim_end_matches(']'));
        let (word, meaning) = line.split_once(" = ")?;
        Some([kind, word, meaning])
    })
}

/// How a word is looked up: in small letters, with a dash for a blank.
pub fn key(word: &str) -> String {
    word.trim().to_lowercase().replace([' ', '_'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_kind_or_a_word_with_a_sentence() {
        let lines = TERMS.lines().filter(|line| !line.is_empty() && !line.starts_with('['));
        assert_eq!(lines.count(), terms().count(), "a line has no ' = '");
        for [kind, word, meaning] in terms() {
            assert!(!kind.is_empty() && meaning.ends_with('.'), "{word}: {meaning}");
        }
    }
}

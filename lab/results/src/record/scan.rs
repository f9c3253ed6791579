// SPDX-License-Identifier: MIT OR Apache-2.0
//! One look over the bytes of a foreign JSON text before it is parsed.

/// Values a result file may hold. A record has some two hundred, so this is room for 40 000
/// records; and a value costs the parser at most some 100 bytes beyond its own text, which bounds
/// its memory at the file's size plus 800 MB.
pub(super) const MOST_VALUES: usize = 8_000_000;

/// Counts the values, an upper bound, and disarms control characters
/// inside of strings: texts out of a result file reach terminals,
/// where an escape sequence is a command. Line ends and tabs stay.
///
/// A disarmed escape keeps its length, so that the positions in messages about the text stay right.
pub(super) fn scan(text: &mut [u8]) -> usize {
    let mut values = 1;
    let mut inside = false;
    let mut index = 0;
    while index < text.len() {
        match (inside, text[index]) {
            (_, b'"') => inside = !inside,
            (false, b',' | b'[' | b'{') => values += 1,
            (true, b'\\') => {
                disarm_escape(&mut text[index..]);
                // Whatever is escaped is not the end of the string.
                index += 1;
            }
            // U+007F, and U+0080 to U+009F in UTF-8: the control characters that JSON allows unescaped.
            (true, 0x7f) => text[index] = b'?',
            (true, 0xc2) if matches!(text.get(index + 1), Some(0x80..=0x9f)) => {
                text[index..index + 2].copy_from_slice(b"??");
            }
            _ => {}
        }
        index += 1;
    }
    values
}

/// Replaces an escaped control character by U+FFFD, and `\b` and `\f` by spaces.
fn disarm_escape(escape: &mut [u8]) {
    match escape {
        [_, b'b' | b'f', ..] => escape[..2].copy_from_slice(b"  "),
        [_, b'u', b'0', b'0', high, low, ..] => {
            let code = u8::from_str_radix(std::str::from_utf8(&[*high, *low]).unwrap_or(""), 16);
            if code.is_ok_and(|code| char::from(code).is_control() && !matches!(code, b'\t' | b'\n' | b'\r'))
            {
                escape[2..6].copy_from_slice(b"fffd");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> (usize, String) {
        let mut bytes = text.as_bytes().to_vec();
        let values = scan(&mut bytes);
        (values, String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn values_are_counted_and_strings_are_not_taken_for_structure() {
        assert!(scanned(r#"{"a": [1, 2, 3], "b": ",,,,[[["}"#).0 <= 7);
        assert!(scanned(&"[".repeat(1000)).0 >= 1000);
        assert!(scanned(r#""\",,,,,,""#).0 == 1, "an escaped quote does not end the string");
    }

    #[test]
    fn an_escape_sequence_for_the_terminal_is_disarmed_and_the_text_keeps_its_length() {
        for (hostile, harmless) in [
            (r#""\u001b[2J""#, r#""\ufffd[2J""#),
            (r#""\u009B2J""#, r#""\ufffd2J""#),
            ("\"\u{9b}2J\u{7f}\"", "\"??2J?\""),
            (r#""a\bc""#, r#""a  c""#),
            (r#""tab\tline\n\u000a\\u001b""#, r#""tab\tline\n\u000a\\u001b""#),
        ] {
            assert_eq!(scanned(hostile).1, harmless);
        }
    }
}

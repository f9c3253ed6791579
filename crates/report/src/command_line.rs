// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command lines as they can be typed again.

use doorbell_results::record::ResultFile;

/// A command line as a shell takes it.
pub fn command(words: &[String]) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:%+@".contains(letter);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(safe) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The command that does the run of `result` once more, its orders included; of a file written before that was stored, the one that did it.
pub fn repeat(result: &ResultFile) -> String {
    command(if result.repeat.is_empty() { &result.command_line } else { &result.repeat })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn a_command_is_one_that_a_shell_takes() {
        let mut result = sample::result(&[], 0, |_, _| 0.0);
        result.repeat = ["doorbell", "ping", "--name", "it's", "a b", ""].map(str::to_owned).to_vec();
        assert_eq!(repeat(&result), "doorbell ping --name 'it'\\''s' 'a b' ''");
        result.repeat.clear();
        assert_eq!(repeat(&result), "doorbell ping");
    }
}

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

/// The command that does the run of `result` once more, its orders included; a file it wrote is not written again.
pub fn repeat(result: &ResultFile) -> String {
    let mut words = vec!["doorbell".to_owned()];
    let mut given = result.command_line.iter().skip(1);
    let mut seeded = false;
    while let Some(word) = given.next() {
        if ["-o", "--output"].contains(&word.as_str()) {
            given.next();
        } else if !word.starts_with("--output=") {
            seeded |= word == "--seed" || word.starts_with("--seed=");
            words.push(word.clone());
        }
    }
    if !seeded {
        words.extend(["--seed".to_owned(), result.plan.seed.to_string()]);
    }
    command(&words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn a_run_is_repeated_with_its_seed_and_not_over_its_result() {
        let mut result = sample::result(&[], 0, |_, _| 0.0);
        result.plan.seed = 7;
        let words = ["/opt/my doorbell", "spin", "--gap", "1ms", "-o", "a b.json", "--output=c.json"];
        result.command_line = words.map(str::to_owned).to_vec();
        assert_eq!(repeat(&result), "doorbell spin --gap 1ms --seed 7");
        result.command_line.push("--seed=3".to_owned());
        assert_eq!(repeat(&result), "doorbell spin --gap 1ms --seed=3");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a command and gives back what it printed.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Runs `words` and returns standard output and standard error together.
pub fn output(words: &[String]) -> anyhow::Result<String> {
    let (program, arguments) = words.split_first().context("an empty command")?;
    let output =
        Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output().with_context(
            || format!("cannot start {program}; `ci/install/60-peers.sh` installs the peers"),
        )?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("`{}` ended with {}: {}", words.join(" "), output.status, text.trim());
    }
    Ok(text)
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The number in the last word before `unit` on the line that holds it.
pub fn number_before(text: &str, unit: &str) -> anyhow::Result<f64> {
    let line =
        text.lines().find(|line| line.contains(unit)).with_context(|| format!("no '{unit}' in: {text}"))?;
    let before = &line[..line.find(unit).unwrap_or(0)];
    let word =
        before.split_whitespace().last().with_context(|| format!("nothing before '{unit}' in: {line}"))?;
    word.parse().with_context(|| format!("'{word}' is no number in: {line}"))
}

/// The number in the first word after `label` on the line that holds it.
pub fn number_after(text: &str, label: &str) -> anyhow::Result<f64> {
    let line =
        text.lines().find(|line| line.contains(label)).with_context(|| format!("no '{label}' in: {text}"))?;
    let after = &line[line.find(label).unwrap_or(0) + label.len()..];
    let word =
        after.split_whitespace().next().with_context(|| format!("nothing after '{label}' in: {line}"))?;
    word.parse().with_context(|| format!("'{word}' is no number in: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_beside_their_words() {
        let text = "# Running\n      7.870000 usecs/op\n         127064 ops/sec\nTime: 0.144\n";
        assert_eq!(number_before(text, "usecs/op").unwrap(), 7.87);
        assert_eq!(number_after(text, "Time:").unwrap(), 0.144);
        assert!(number_before(text, "furlongs").is_err());
        assert!(number_after("Time: soon", "Time:").is_err());
    }
}

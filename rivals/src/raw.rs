// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every block as it came, one JSON object a line, for those who want
//! to compute something else of it.

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

pub struct Raw(Option<(File, PathBuf)>);

impl Raw {
    /// Adds to what the file holds. Nothing is written if no file is named.
    pub fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let open = |path: &Path| -> anyhow::Result<_> {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Ok((file.with_context(|| format!("cannot write {}", path.display()))?, path.to_owned()))
        };
        path.map(open).transpose().map(Self)
    }

    pub fn line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let Some((file, path)) = &mut self.0 else { return Ok(()) };
        // Whole, in one call, and on a line of its own whatever a run that was cut has left.
        let text = format!("\n{}", serde_json::to_string(line)?);
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// What a file holds; nothing if there is none. What a cut run left
/// at its end is left out, other lines are errors.
///
/// # Errors
/// The file cannot be read, or a line of it is something else.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    parse(&text).with_context(|| path.display().to_string())
}

fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<Vec<T>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let parsed = lines.map(|(number, line)| match serde_json::from_str(line) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_eof() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("line {}", number + 1)),
    });
    parsed.filter_map(anyhow::Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cut_run_left_is_left_out_and_a_foreign_line_is_named() {
        assert_eq!(parse::<Vec<u32>>("\n[1]\n[2, 3").unwrap(), [[1]]);
        let error = parse::<Vec<u32>>("[1]\n{\"a\":1}\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}

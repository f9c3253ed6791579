// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of every round in a file, one comparison a line, so that one table can be made of several calls.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::comparison::{Comparison, Measured};

/// Adds the figures of one comparison.
pub fn add(path: &Path, comparison: &Comparison, figures: &Measured) -> anyhow::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let line = json!({
        "name": comparison.name, "unit": comparison.unit, "theirs": figures.theirs, "ours": figures.ours,
        "repeated": figures.repeated,
    });
    writeln!(file, "{line}").with_context(|| format!("cannot write {}", path.display()))
}

/// The figures by the name of the comparison; the last line of a name counts.
pub fn read(path: &Path) -> anyhow::Result<HashMap<String, Measured>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> anyhow::Result<HashMap<String, Measured>> {
    let mut kept = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line: Value = serde_json::from_str(line).with_context(|| format!("line {number}"))?;
        let figures =
            |side: &str| -> Option<Vec<f64>> { line[side].as_array()?.iter().map(Value::as_f64).collect() };
        let (Some(name), Some(theirs), Some(ours)) =
            (line["name"].as_str(), figures("theirs"), figures("ours"))
        else {
            anyhow::bail!("line {number} is no comparison with `name`, `theirs` and `ours`");
        };
        anyhow::ensure!(theirs.len() == ours.len(), "line {number}: the two sides have not as many rounds");
        let repeated = line["repeated"].as_array().into_iter().flatten();
        let repeated = repeated.filter_map(Value::as_str).map(str::to_owned).collect();
        kept.insert(name.to_owned(), Measured { theirs, ours, repeated });
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_comparison_counts_and_a_foreign_line_is_named() {
        let once = r#"{"name":"a","theirs":[1.0],"ours":[2.0]}"#;
        let again = r#"{"name":"a","theirs":[3.0],"ours":[4.0]}"#;
        assert_eq!(parse(&format!("{once}\n{again}\n")).unwrap()["a"].ours, [4.0]);
        let error = parse(&format!("{once}\n{{\"name\":\"a\"}}\n")).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `doorbell` and takes one figure out of its result file.

use anyhow::Context;
use serde_json::Value;

use crate::peers::Setup;
use crate::peers::command;

/// Which figure of the record is compared.
#[derive(Debug, Clone, Copy)]
pub enum Figure {
    /// The mean of a series, nanoseconds.
    Mean(&'static str),
    /// The median of a series, nanoseconds.
    Median(&'static str),
    /// A single figure by the end of its name.
    Named(&'static str),
}

/// Runs `doorbell ARGUMENTS` once and returns the figure of the record of `subject`.
pub fn run(setup: &Setup, arguments: &str, subject: &str, figure: Figure) -> anyhow::Result<f64> {
    let mut words = vec![setup.doorbell.display().to_string()];
    words.extend(command::words(arguments));
    words.extend(command::words("--blocks 1 --quiet --output -"));
    let text = command::output(&words)?;
    let start = text.find('{').with_context(|| format!("no JSON in: {text}"))?;
    let result: Value =
        serde_json::Deserializer::from_str(&text[start..]).into_iter().next().context("no result")??;
    let record = result["records"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|record| record["configuration"]["subject"] == subject)
        .with_context(|| format!("no record of {subject}"))?;
    let outcome = &record["outcome"]["kind"];
    anyhow::ensure!(outcome == "done", "the trial of {subject} is {}", record["outcome"]);
    let value = match figure {
        Figure::Mean(series) => &record["series"][series]["mean_ns"],
        Figure::Median(series) => &record["series"][series]["p50_ns"],
        Figure::Named(end) => record["figures"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|figure| figure["name"].as_str().is_some_and(|name| name.ends_with(end)))
            .map_or(&Value::Null, |figure| &figure["value"]),
    };
    value.as_f64().with_context(|| format!("no {figure:?} in the record of {subject}"))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a result said when it was written, for programs: how it stands, why, and the figure and
//! interval of each configuration.

use serde::{Deserialize, Serialize};

/// The verdict of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// How it stands.
    pub status: Status,
    /// The verdict in a sentence or two.
    pub reason: String,
    /// Whether other work interfered with most of the trials.
    #[serde(default)]
    pub provisional: bool,
    /// What it is made of; empty of a run that was asked nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// How a verdict stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// There is an answer, and nothing that it could break.
    Answered,
    /// What was asked for is kept.
    Passed,
    /// What was asked for is broken.
    Failed,
    /// Neither is shown.
    Inconclusive,
}

impl Status {
    /// Of what was shown to be broken, or left open.
    pub fn of(broken: bool, open: bool) -> Self {
        match (broken, open) {
            (true, _) => Self::Failed,
            (false, true) => Self::Inconclusive,
            (false, false) => Self::Passed,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// One configuration of a verdict.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The configuration in words, as tables name it.
    pub configuration: String,
    /// What was looked at: `p50`, `p99.9`, `cost`, a condition, …
    pub figure: String,
    /// How it stands.
    pub status: Status,
    /// Why, in words; may be empty.
    pub reason: String,
    /// The figure, where there is one.
    pub value: Option<f64>,
    /// The ends between which the figure lies; one that is not known is missing.
    pub interval: Option<[Option<f64>; 2]>,
    /// `ns`, `ratio` or `count`.
    pub unit: String,
}

impl Finding {
    /// Of a configuration and a figure, nothing else being known of it.
    pub fn new(configuration: String, figure: impl Into<String>, status: Status, unit: &str) -> Self {
        Self {
            configuration,
            figure: figure.into(),
            status,
            reason: String::new(),
            value: None,
            interval: None,
            unit: unit.to_owned(),
        }
    }

    /// With its figure and the ends between which that lies; what is not finite is not known.
    #[must_use]
    pub fn valued(self, value: f64, interval: Option<[f64; 2]>) -> Self {
        let known = |value: f64| value.is_finite().then_some(value);
        Self { value: known(value), interval: interval.map(|ends| ends.map(known)), ..self }
    }

    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

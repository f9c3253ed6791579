// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is this machine fit to measure? One file per family of findings, each a pure function of the
//! [`Machine`](super::Machine).
//!
//! A finding changes nothing about the machine: the lab measures it as it was found, and says what
//! that does to the figures. Only what would make figures false is [`Severity::Unfit`].

use serde::{Deserialize, Serialize};

/// How much a finding matters to figures taken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// The figures are right for this machine; know this before carrying them elsewhere.
    Note,
    /// The figures are worse or noisier than the machine need be.
    Warn,
    /// The figures would be false.
    Unfit,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Unfit => "unfit",
        }
    }
}

/// One thing about the machine that figures depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its name, the same on every machine.
    pub name: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, with values.
    pub seen: String,
    /// What it does to measurements; empty where nothing is wrong.
    pub effect: String,
    /// What to do about it; empty where nothing is wrong.
    pub cure: String,
    /// Where to read more.
    pub source: String,
}

/// The findings that stand beside every verdict where they warn of something, by name: time that
/// the sides did not get, and how they were scheduled.
pub const BESIDE_VERDICTS: [&str; 4] = ["load", "steal", "quota", "scheduling"];

pub fn worst(findings: &[Finding]) -> Severity {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
}

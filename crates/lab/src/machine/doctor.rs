// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is this machine fit to measure? One file per family of findings, each a pure function of the [`Machine`].
//!
//! A finding changes nothing about the machine: the lab measures it as it was found, and says what that does to the
//! figures. Only what would make figures false is [`Severity::Unfit`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Machine;

mod clock_source;
mod cpus;
mod dma_latency;
mod governor;
mod idle_states;
mod interrupts;
mod isolation;
mod limits;
mod load;
mod mitigations;
mod preemption;
mod quota;
mod smt;
mod steal;
mod tracing;
mod tsc;
mod turbo;
mod virtualisation;

/// How much a finding matters to figures taken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
    /// The word printed and stored.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What a family says: everything of a [`Finding`] but its name and source.
#[derive(Debug)]
struct Verdict {
    severity: Severity,
    seen: String,
    effect: String,
    cure: String,
}

impl Verdict {
    fn ok(seen: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, seen: seen.into(), effect: String::new(), cure: String::new() }
    }

    fn bad(
        severity: Severity,
        seen: impl Into<String>,
        effect: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self { severity, seen: seen.into(), effect: effect.into(), cure: cure.into() }
    }

    fn note(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Note, seen, effect, cure)
    }

    fn warn(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Warn, seen, effect, cure)
    }

    fn unfit(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Unfit, seen, effect, cure)
    }
}

/// A family: its name, where to read more, its examination.
type Family = (&'static str, &'static str, fn(&Machine) -> Verdict);

/// Every family, in the order of the report: clocks first, for without them nothing can be said. The one list to extend.
const FAMILIES: [Family; 18] = [
    ("clock-source", clock_source::SOURCE, clock_source::examine),
    ("tsc", tsc::SOURCE, tsc::examine),
    ("cpus", cpus::SOURCE, cpus::examine),
    ("load", load::SOURCE, load::examine),
    ("steal", steal::SOURCE, steal::examine),
    ("quota", quota::SOURCE, quota::examine),
    ("virtualisation", virtualisation::SOURCE, virtualisation::examine),
    ("governor", governor::SOURCE, governor::examine),
    ("turbo", turbo::SOURCE, turbo::examine),
    ("idle-states", idle_states::SOURCE, idle_states::examine),
    ("dma-latency", dma_latency::SOURCE, dma_latency::examine),
    ("smt", smt::SOURCE, smt::examine),
    ("isolation", isolation::SOURCE, isolation::examine),
    ("interrupts", interrupts::SOURCE, interrupts::examine),
    ("preemption", preemption::SOURCE, preemption::examine),
    ("mitigations", mitigations::SOURCE, mitigations::examine),
    ("limits", limits::SOURCE, limits::examine),
    ("tracing", tracing::SOURCE, tracing::examine),
];

/// Whether what stands in `/sys` is unknown rather than absent: every kernel that shows it lists the present CPUs.
fn sysfs_is_hidden(machine: &Machine) -> bool {
    machine.topology.present.is_none()
}

/// One finding per family, those without fault among them.
pub fn examine(machine: &Machine) -> Vec<Finding> {
    FAMILIES
        .iter()
        .map(|(name, source, examine)| {
            let Verdict { severity, seen, effect, cure } = examine(machine);
            Finding { name: (*name).to_owned(), severity, seen, effect, cure, source: (*source).to_owned() }
        })
        .collect()
}

/// The gravest severity among `findings`.
pub fn worst(findings: &[Finding]) -> Severity {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fan-outs as the harness takes them.

use doorbell_harness::family::{Family, OpenedSides, TrialContext};
use doorbell_harness::fanout::fan::FanEntry;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::subject::Subject;

use super::{find, limits};

#[derive(Debug)]
pub struct FanOuts;

impl Family for FanOuts {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::FanOut { .. })
    }

    fn subject(&self, configuration: &Configuration) -> Option<Subject> {
        Some(find(&configuration.subject).ok()?.subject())
    }

    fn lacks(&self, configuration: &Configuration, machine: &Machine) -> Option<String> {
        match find(&configuration.subject) {
            Ok(entry) if !entry.notification.joins(configuration.contexts) => Some(
                format!("{} does not join {:?}", configuration.subject, configuration.contexts)
                    .to_lowercase(),
            ),
            Ok(entry) => match (entry.available)() {
                Ok(()) => limits::lacks(configuration, machine),
                Err(lack) => Some(lack.reason),
            },
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    fn fan_out(&self, configuration: &Configuration) -> Option<Result<&'static FanEntry, String>> {
        Some(find(&configuration.subject).map_err(|unknown| unknown.to_string()))
    }

    fn open(&self, _: &TrialContext<'_>) -> Result<OpenedSides, String> {
        Err("a fan-out has processes of its own".to_owned())
    }
}

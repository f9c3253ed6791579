// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means of notification as the harness takes them: there and back, or one way.

use doorbell_harness::family::{Family, OpenedSides, TrialContext};
use doorbell_harness::role::Role;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::Record;
use doorbell_results::record::subject::{Subject, Waits};

use super::find;

#[derive(Debug)]
pub struct Mechanisms;

impl Family for Mechanisms {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::PingPong { .. } | Pattern::OneWay { .. } | Pattern::OpenLoop { .. })
    }

    fn subject(&self, configuration: &Configuration) -> Option<Subject> {
        Some(Subject::Mechanism(find(&configuration.subject).ok()?.notification()))
    }

    fn lacks(&self, configuration: &Configuration, _: &Machine) -> Option<String> {
        match find(&configuration.subject) {
            Ok(entry) if !entry.notification().joins(configuration.contexts) => Some(
                format!("{} does not join {:?}", configuration.subject, configuration.contexts)
                    .to_lowercase(),
            ),
            Ok(entry) => entry.available().err().map(|lack| lack.reason),
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    fn open(&self, trial: &TrialContext<'_>) -> Result<OpenedSides, String> {
        let there_and_back = matches!(trial.configuration.pattern, Pattern::PingPong { .. });
        let roles = if there_and_back { [Role::Initiate, Role::Respond] } else { [Role::Emit, Role::Absorb] };
        let entry = find(&trial.configuration.subject).map_err(|error| error.to_string())?;
        let links = entry.open(trial.site, roles.len() - usize::from(!there_and_back));
        let links = links.map_err(|error| error.to_string())?;
        Ok(OpenedSides { roles, links, contexts: trial.configuration.contexts })
    }

    fn derive(&self, record: &mut Record, _: &Machine) {
        // What nobody waits for is not lost.
        let awaited = record.subject.notification().is_some_and(|own| own.waits != Waits::Nothing);
        if awaited && !matches!(record.configuration.pattern, Pattern::PingPong { .. }) {
            record.tally.lost += record.tally.sent.saturating_sub(record.tally.seen);
        }
    }
}

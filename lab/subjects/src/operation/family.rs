// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations as the harness takes them.

use doorbell_harness::family::{Family, OpenedSides, TrialContext};
use doorbell_harness::role::Role;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::Record;
use doorbell_results::record::subject::Subject;

use super::{figures, find};

#[derive(Debug)]
pub struct Operations;

impl Family for Operations {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::Operation { .. })
    }

    fn subject(&self, configuration: &Configuration) -> Option<Subject> {
        Some(find(&configuration.subject).ok()?.subject())
    }

    fn lacks(&self, configuration: &Configuration, _: &Machine) -> Option<String> {
        match find(&configuration.subject) {
            Ok(operation) => operation.fits(configuration).err().map(|lack| lack.reason),
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    fn open(&self, trial: &TrialContext<'_>) -> Result<OpenedSides, String> {
        let operation = find(&trial.configuration.subject).map_err(|error| error.to_string())?;
        let links = (operation.open)(trial.site, trial.configuration).map_err(|error| error.to_string())?;
        let roles = [Role::Initiate, Role::Respond];
        Ok(OpenedSides { roles, links, contexts: trial.configuration.contexts })
    }

    fn derive(&self, record: &mut Record, _: &Machine) {
        figures::derive(record);
    }
}

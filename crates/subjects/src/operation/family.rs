// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations as the harness takes them.

use doorbell_harness::family::{Cast, Family, Stage};
use doorbell_harness::role::Role;
use doorbell_harness::site::Host;
use doorbell_results::cell::{Cell, Pattern};
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

    fn subject(&self, cell: &Cell) -> Option<Subject> {
        Some(find(&cell.subject).ok()?.subject())
    }

    fn lacks(&self, cell: &Cell, _: &Machine) -> Option<String> {
        match find(&cell.subject) {
            Ok(operation) => operation.fits(cell, &Host::default()).err().map(|lack| lack.reason),
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    fn open(&self, stage: &Stage<'_>) -> Result<Cast, String> {
        let operation = find(&stage.cell.subject).map_err(|error| error.to_string())?;
        let lines = operation.open(stage.site, stage.cell).map_err(|error| error.to_string())?;
        let roles = [Role::Initiate, Role::Respond];
        Ok(Cast { roles, lines, contexts: stage.cell.contexts, reference: false })
    }

    fn derive(&self, record: &mut Record, _: &Machine) {
        figures::derive(record);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of task as the harness takes them.

use doorbell_harness::family::{Cast, Family, Stage};
use doorbell_harness::role::Role;
use doorbell_harness::site::Host;
use doorbell_results::cell::{Cell, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::Record;
use doorbell_results::record::subject::{Contexts, Subject};

use super::{Play, Scene, find, limits, scene};

#[derive(Debug)]
pub struct Tasks;

impl Family for Tasks {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::Tasks { .. })
    }

    fn subject(&self, cell: &Cell) -> Option<Subject> {
        Some(find(&cell.subject).ok()?.subject())
    }

    fn lacks(&self, cell: &Cell, machine: &Machine) -> Option<String> {
        match find(&cell.subject) {
            Ok(kind) => match kind.available(&Host::default()) {
                Ok(()) => limits::lacks(cell, machine),
                Err(lack) => Some(lack.reason),
            },
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    /// Tasks have a working set each and no messages.
    fn message_bytes(&self, _: &Cell) -> usize {
        0
    }

    fn own_bytes(&self, cell: &Cell) -> usize {
        scene::bytes(cell)
    }

    fn open(&self, stage: &Stage<'_>) -> Result<Cast, String> {
        let kind = find(&stage.cell.subject).map_err(|error| error.to_string())?;
        let scene = Scene::place(stage.arena, stage.cell, stage.clock, stage.control);
        let scene = scene.map_err(|error| error.to_string())?;
        Ok(Cast {
            roles: [Role::Initiate, Role::Respond],
            lines: Box::new(Play { kind, scene }),
            // Whatever the tasks are, whoever drives them is a process with one thread, from which others can be forked.
            contexts: Contexts::Processes,
            reference: false,
        })
    }

    fn derive(&self, record: &mut Record, machine: &Machine) {
        limits::derive(record, machine);
    }
}

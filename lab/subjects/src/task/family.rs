// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of task as the harness takes them.

use doorbell_harness::family::{Family, OpenedSides, TrialContext};
use doorbell_harness::role::Role;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::Record;
use doorbell_results::record::subject::{Contexts, Subject};

use super::{Driver, TaskContext, find, limits, task_context};

#[derive(Debug)]
pub struct Tasks;

impl Family for Tasks {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::Tasks { .. })
    }

    fn subject(&self, configuration: &Configuration) -> Option<Subject> {
        Some(find(&configuration.subject).ok()?.subject())
    }

    fn lacks(&self, configuration: &Configuration, machine: &Machine) -> Option<String> {
        match find(&configuration.subject) {
            Ok(kind) => match (kind.available)() {
                Ok(()) => limits::lacks(configuration, machine),
                Err(lack) => Some(lack.reason),
            },
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    /// Tasks have a working set each and no messages.
    fn message_bytes(&self, _: &Configuration) -> usize {
        0
    }

    fn own_bytes(&self, configuration: &Configuration) -> usize {
        task_context::bytes(configuration)
    }

    fn open(&self, trial: &TrialContext<'_>) -> Result<OpenedSides, String> {
        let kind = find(&trial.configuration.subject).map_err(|error| error.to_string())?;
        let task_context = TaskContext::place(trial.arena, trial.configuration, trial.clock, trial.control);
        let task_context = task_context.map_err(|error| error.to_string())?;
        Ok(OpenedSides {
            roles: [Role::Initiate, Role::Respond],
            links: Box::new(Driver { kind, task_context }),
            // Whatever the tasks are, whoever drives them is a process
            // with one thread, from which others can be forked.
            contexts: Contexts::Processes,
        })
    }

    fn derive(&self, record: &mut Record, machine: &Machine) {
        limits::derive(record, machine);
    }
}

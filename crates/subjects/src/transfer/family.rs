// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to wait for a device as the harness takes them.

use doorbell_harness::family::{Cast, Family, Stage};
use doorbell_harness::role::Role;
use doorbell_harness::site::Host;
use doorbell_results::cell::{Cell, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::Record;
use doorbell_results::record::subject::Subject;

use super::{Drive, figures, find, target};

#[derive(Debug)]
pub struct Transfers;

impl Family for Transfers {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::Io { .. })
    }

    fn subject(&self, cell: &Cell) -> Option<Subject> {
        Some(find(&cell.subject).ok()?.subject())
    }

    fn lacks(&self, cell: &Cell, machine: &Machine) -> Option<String> {
        let way = match find(&cell.subject) {
            Ok(way) => way,
            Err(unknown) => return Some(unknown.to_string()),
        };
        if let Err(lack) = way.available(&Host::default()) {
            return Some(lack.reason);
        }
        let one_cpu = match cell.placement.cpus {
            Some([first, second]) => first == second,
            None => machine.topology.usable.len() < 2,
        };
        (way.kernel_thread() && one_cpu).then(|| {
            format!("{} needs two CPUs: one for the waiter, one for the kernel's thread", way.name())
        })
    }

    /// Transfers have a buffer of their own and no messages.
    fn message_bytes(&self, _: &Cell) -> usize {
        0
    }

    fn open(&self, stage: &Stage<'_>) -> Result<Cast, String> {
        let cell = stage.cell;
        let Pattern::Io { direction, direct } = cell.pattern else {
            return Err("this is no transfer".to_owned());
        };
        let way = find(&cell.subject).map_err(|error| error.to_string())?;
        let target = cell.target.as_ref().ok_or("the cell names nothing to transfer to or from")?;
        let target = target::open(target, direction, direct, cell.size, stage.run_dir.path());
        let target = target.map_err(|error| error.to_string())?;
        Ok(Cast {
            roles: [Role::Initiate, Role::Respond],
            lines: Box::new(Drive { way, target }),
            contexts: cell.contexts,
            reference: false,
        })
    }

    fn derive(&self, record: &mut Record, _: &Machine) {
        figures::derive(record);
    }
}

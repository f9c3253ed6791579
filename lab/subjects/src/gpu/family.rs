// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to wait for a GPU as the harness takes them.

use super::device::device;
use super::drive::Drive;
use super::find;
use doorbell_harness::family::{Family, OpenedSides, TrialContext};
use doorbell_harness::role::Role;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::record::subject::Subject;
use doorbell_results::record::{Record, SideCounters};

#[derive(Debug)]
pub struct Gpus;

impl Family for Gpus {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::Gpu { .. })
    }

    fn subject(&self, configuration: &Configuration) -> Option<Subject> {
        Some(find(&configuration.subject).ok()?.subject())
    }

    fn lacks(&self, configuration: &Configuration, _: &Machine) -> Option<String> {
        find(&configuration.subject).err().map(|unknown| unknown.to_string()).or_else(|| device().err())
    }

    /// To make a GPU ready takes a third of a second, and its threads wait as their context does:
    /// what waits alike is done by one process.
    fn one_by_one(&self, configuration: &Configuration) -> Option<u32> {
        Some(find(&configuration.subject).ok()?.schedule as u32)
    }

    fn message_bytes(&self, _: &Configuration) -> usize {
        0
    }

    fn open(&self, trial: &TrialContext<'_>) -> Result<OpenedSides, String> {
        let way = find(&trial.configuration.subject).map_err(|unknown| unknown.to_string())?;
        let contexts = trial.configuration.contexts;
        // One way: of who notifies first there and back, a wake-up is the one on the way back.
        let roles = [Role::Emit, Role::Absorb];
        Ok(OpenedSides { roles, links: Box::new(Drive(way)), contexts })
    }

    /// The driver's threads, with those that wait beside, are a side of their own; the side that
    /// leaves at once has counted nothing.
    fn derive(&self, record: &mut Record, _: &Machine) {
        record.sides.retain(|side| side.window_ns > 0);
        let window_ns = record.sides.first().map_or(0, |side| side.window_ns);
        let spent = record.io.as_ref().map_or(0, |counted| counted.kernel_thread_ns);
        if spent > 0 {
            let side = "other threads".to_owned();
            record.sides.push(SideCounters { side, system_ns: spent, window_ns, ..SideCounters::default() });
        }
    }
}

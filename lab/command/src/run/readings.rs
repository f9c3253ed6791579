// SPDX-License-Identifier: MIT OR Apache-2.0
//! The primitive costs as they are read during a run.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::run::in_turn::Partner;
use doorbell_harness::primitives;
use doorbell_results::machine::Machine;
use doorbell_results::record::result::Primitives;
use doorbell_results::record::{Warning, warning};

/// Two cores whose primitive costs stand for the run's; one twice where there is only one.
pub(super) fn primitive_cpus(machine: &Machine) -> [u32; 2] {
    let first = machine.topology.usable.iter().next().unwrap_or(0);
    machine.topology.two_cores().unwrap_or([first; 2])
}

/// The primitive costs as they were read during a run.
pub(super) struct Readings<'run> {
    pub(super) machine: &'run Machine,
    pub(super) partner: Option<&'run Partner>,
    pub(super) interrupted: &'run AtomicBool,
    pub(super) cpus: [u32; 2],
    pub(super) primitives: Vec<Primitives>,
    pub(super) last: Instant,
}

/// Where pairs of sides follow one another on the bench, primitive costs are read again after so
/// long: a reading takes a tenth of a second.
const READ_AGAIN: Duration = Duration::from_secs(4);

impl Readings<'_> {
    /// Two programs that take turns do the same, whatever their clocks say.
    pub(super) fn are_old(&self) -> bool {
        self.partner.is_none() && self.last.elapsed() > READ_AGAIN
    }

    /// Reads them once more; a warning if they cannot be read.
    pub(super) fn read(&mut self, block: u32) -> io::Result<Option<Warning>> {
        let read = || primitives::measure(self.machine.clock, self.cpus, block);
        let read = match self.partner {
            Some(partner) => partner.by_turns(&("costs", block), self.interrupted, read)?,
            None => Some(read()),
        };
        match read {
            Some(Ok(reading)) => self.primitives.push(reading),
            Some(Err(error)) => return Ok(Some(no_primitives(&error))),
            None => return Ok(None),
        }
        self.last = Instant::now();
        Ok(None)
    }
}

fn no_primitives(error: &io::Error) -> Warning {
    Warning {
        name: warning::NO_PRIMITIVES.name.to_owned(),
        cause: error.to_string(),
        effect:
            "figures cannot be held against the machine's primitive costs, nor can a comparison see them move"
                .to_owned(),
        cure: "see that this process may start others and use the CPUs of its affinity mask".to_owned(),
    }
}

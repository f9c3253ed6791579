// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else goes on while a trial runs: here only when it ran and for how long is known, and nothing is held against it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use doorbell_results::configuration::Configuration;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::{Environment, Warning};

/// A trial under observation.
#[derive(Debug)]
pub struct Watch {
    unix_ns: u64,
    began: Instant,
    cpus: CpuList,
}

impl Watch {
    /// Begins to watch the CPUs on which one of `configurations` is measured.
    pub fn begin(configurations: &[&Configuration], topology: &Topology) -> Self {
        let pinned: Option<Vec<[u32; 2]>> = configurations.iter().map(|one| one.placement.cpus).collect();
        let cpus = match pinned {
            Some(cpus) => cpus.into_iter().flatten().collect(),
            None => topology.usable.clone(),
        };
        let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
        Self { unix_ns, began: Instant::now(), cpus }
    }

    /// What went on.
    pub fn end(self) -> Environment {
        Environment {
            started_at_unix_ns: self.unix_ns,
            wall_ns: self.began.elapsed().as_nanos() as u64,
            cpus: self.cpus,
            ..Environment::default()
        }
    }
}

/// Nothing is known that could count as interference.
pub fn interference(_: &Environment) -> Vec<Warning> {
    Vec::new()
}

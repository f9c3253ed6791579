// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one type of machine from another, and a configuration
//! from others on whatever machine it ran.

use doorbell_results::configuration::{Configuration, Until};
use doorbell_results::machine::Machine;

/// What tells types of machines apart: maker and product by the
/// firmware, processor, CPUs, hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Type {
    pub product: Option<String>,
    pub processor: Option<String>,
    pub cpus: usize,
    pub hypervisor: Option<String>,
}

impl Type {
    pub fn of(machine: &Machine) -> Self {
        Self {
            product: machine.virtualisation.product.clone(),
            processor: machine.processor.model_name.clone().or_else(|| machine.processor.vendor.clone()),
            cpus: machine.topology.online.len(),
            hypervisor: machine.virtualisation.hypervisor.clone(),
        }
    }
}

/// A configuration by what it is on any machine.
pub(super) fn key(configuration: &Configuration) -> String {
    let mut any = Configuration { until: Until::default(), ..configuration.clone() };
    any.placement.cpus = None;
    format!("{any:?}")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell idle` as a plan: how long the waiter slept x whether the
//! kernel is asked to keep idle CPUs shallow.

use std::time::Duration;

use super::ping::usual_window;
use doorbell_harness::latency_limit::DEVICE;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;

/// The harness's own cost, once in each run.
const CONTROL: &str = "null";

/// Gaps of a run that names none: three to a decade, from where no
/// idle state pays to where every one does.
pub const GAPS: [Duration; 9] = [
    Duration::from_micros(10),
    Duration::from_micros(30),
    Duration::from_micros(100),
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
];

/// What is asked for; every list is one axis of the plan.
#[derive(Debug, Clone)]
pub struct Idle {
    pub mechanisms: Vec<String>,
    /// Time between the last wake and the next notification,
    /// nanoseconds: how long the waiter sleeps.
    pub gaps_ns: Vec<u64>,
    /// Limits of latency that the kernel is asked to keep to,
    /// microseconds; none leaves the machine as it is.
    pub limits_us: Vec<Option<u32>>,
    /// Where the notifier and the waiter run.
    pub placement: Placement,
    /// When a trial ends; none gives each trial what its gap needs.
    pub until: Option<Until>,
    pub blocks: u32,
    pub seed: u64,
}

impl Idle {
    pub fn plan(&self) -> Plan {
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut add = |subject: &str, gap_ns, latency_limit_us| {
            let pattern = Pattern::OneWay { gap_ns };
            let configuration = Configuration {
                timing: Timing::Stamp,
                placement: self.placement.clone(),
                latency_limit_us,
                ..Configuration::new(subject, pattern, self.until.unwrap_or_else(|| usual_window(pattern)))
            };
            if !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        };
        if let Some(&gap_ns) = self.gaps_ns.first() {
            add(CONTROL, gap_ns, None);
        }
        for mechanism in &self.mechanisms {
            for &gap_ns in &self.gaps_ns {
                for &limit in &self.limits_us {
                    add(mechanism, gap_ns, limit);
                }
            }
        }
        Plan::new("idle", configurations, self.blocks, self.seed)
    }
}

/// Why a limit of latency cannot be held here; none where none is asked for.
pub fn lacks(configuration: &Configuration, machine: &Machine) -> Option<String> {
    configuration.latency_limit_us?;
    match machine.permissions.dma_latency {
        Some(true) => None,
        Some(false) => {
            Some(format!("{DEVICE} may not be written by this user: run as root, or chmod the device"))
        }
        None => Some(format!("there is no {DEVICE} here; in a container: docker run --device {DEVICE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_is_planned_with_each_limit_and_the_harness_once() {
        let idle = Idle {
            mechanisms: vec!["futex".to_owned(), "null".to_owned()],
            gaps_ns: GAPS.map(|gap| gap.as_nanos() as u64).to_vec(),
            limits_us: vec![None, Some(0)],
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            until: None,
            blocks: 4,
            seed: 1,
        };
        let plan = Idle { mechanisms: vec!["futex".to_owned()], ..idle.clone() }.plan();
        assert_eq!(plan.configurations.len(), 1 + 2 * GAPS.len());
        let distinct: std::collections::HashSet<&Configuration> = plan.configurations.iter().collect();
        assert_eq!(distinct.len(), plan.configurations.len());
        assert_eq!(idle.plan().configurations.len(), 4 * GAPS.len());
    }
}

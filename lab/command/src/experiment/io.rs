// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io` as a plan: I/O engines x directions x sizes of block, on one target; what the
//! target needs before the first trial, and what follows from a trial's counts.

use doorbell_results::configuration::{Configuration, Direction, Pattern, Placement, Target, Until};
use doorbell_results::plan::Plan;
use doorbell_subjects::transfer;
/// What is asked for; every list is one axis of the plan.
#[derive(Debug, Clone)]
pub struct Transfers {
    pub engines: Vec<String>,
    pub directions: Vec<Direction>,
    pub sizes: Vec<u32>,
    /// Whether past the page cache.
    pub direct: bool,
    pub target: Target,
    /// The waiter's CPU, and one for a thread of the kernel.
    pub placement: Placement,
    pub until: Until,
    pub blocks: u32,
    pub seed: u64,
}

impl Transfers {
    pub fn plan(&self) -> Plan {
        let mut configurations: Vec<Configuration> = Vec::new();
        for name in &self.engines {
            let Ok(engine) = transfer::find(name) else { continue };
            for &direction in &self.directions {
                for &size in &self.sizes {
                    let placement =
                        if engine.kernel_thread { self.placement.clone() } else { self.placement.alone() };
                    let configuration = Configuration {
                        placement,
                        size,
                        target: Some(self.target.clone()),
                        ..Configuration::new(
                            name.clone(),
                            Pattern::Io { direction, direct: self.direct },
                            self.until,
                        )
                    };
                    if !configurations.contains(&configuration) {
                        configurations.push(configuration);
                    }
                }
            }
        }
        Plan::new("io", configurations, self.blocks, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn transfers() -> Transfers {
        Transfers {
            engines: transfer::all().iter().map(|engine| engine.name.to_owned()).collect(),
            directions: vec![Direction::Read, Direction::Write],
            sizes: vec![4096],
            direct: true,
            target: Target::Created { bytes: 1 << 20, folder: None, passes: 1 },
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            until: Until::count(10),
            blocks: 1,
            seed: 1,
        }
    }

    #[test]
    fn only_what_has_a_thread_in_the_kernel_takes_a_second_cpu() {
        let plan = transfers().plan();
        assert_eq!(plan.configurations.len(), 2 * transfer::all().len());
        for configuration in &plan.configurations {
            let two = configuration.placement.cpus == Some([0, 1]);
            assert_eq!(two, configuration.subject.contains("sqpoll"), "{}", configuration.subject);
        }
    }
}

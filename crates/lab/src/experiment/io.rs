// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io` as a plan: I/O engines x directions x sizes of block, on one target; what the target needs before
//! the first trial, and what follows from a trial's counts.

use doorbell_results::configuration::{
    Configuration, Direction, Pattern, Placement, Scheduler, Target, Timing, Until, WaitPolicy,
};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::Contexts;
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
                    let placement = if engine.kernel_thread() {
                        self.placement.clone()
                    } else {
                        alone_on(&self.placement)
                    };
                    let configuration = Configuration {
                        subject: name.clone(),
                        contexts: Contexts::Processes,
                        pattern: Pattern::Io { direction, direct: self.direct },
                        timing: Timing::Around,
                        wait: WaitPolicy::Block,
                        placement,
                        size,
                        until: self.until,
                        scheduler: Scheduler::Other,
                        injected_slowdown_ppm: None,
                        without_reference: false,
                        trace: None,
                        load: None,
                        target: Some(self.target.clone()),
                        latency_limit_us: None,
                        schedule: None,
                        beside: None,
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

/// The placement of what needs one CPU: the first.
fn alone_on(placement: &Placement) -> Placement {
    match placement.cpus {
        Some([first, _]) => Placement { relation: "same-core".to_owned(), cpus: Some([first, first]) },
        None => placement.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn transfers() -> Transfers {
        Transfers {
            engines: transfer::all().iter().map(|engine| engine.name().to_owned()).collect(),
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

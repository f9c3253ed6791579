// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tasks` as a plan: kinds of task x numbers of tasks x
//! turns of each x working sets x placements.

use doorbell_results::configuration::{Configuration, Pattern, Placement, Until};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::Contexts;
use doorbell_subjects::task::{self, MadeOf, Measured};
use doorbell_verdict::claims::coroutines::{BOARD, MAKING, SWITCHING};
/// What is asked for; every list is one axis of the plan.
#[derive(Debug, Clone)]
pub struct Tasks {
    /// Kinds of task, by name.
    pub kinds: Vec<String>,
    pub tasks: Vec<u32>,
    pub yields: Vec<u32>,
    /// Bytes that each task writes in its turn.
    pub working_sets: Vec<u32>,
    /// Where threads and processes run; code runs on the first CPU of the first.
    pub placements: Vec<Placement>,
    /// When a trial ends: after so many generations, or so much time.
    pub until: Until,
    pub blocks: u32,
    pub seed: u64,
}

impl Tasks {
    /// The plan: every configuration that makes sense, once.
    pub fn plan(&self) -> Plan {
        let mut configurations: Vec<Configuration> = Vec::new();
        for name in &self.kinds {
            let Ok(kind) = task::find(name) else { continue };
            let lives = kind.measured == Measured::Lives;
            for placement in &self.placements {
                for &tasks in &self.tasks {
                    for &yields in &self.yields {
                        for &size in &self.working_sets {
                            // A task that lives once has no turns between which to write.
                            let (yields, size) = if lives { (0, 0) } else { (yields, size) };
                            let code = kind.made_of == MadeOf::Code || lives;
                            let placement = if code { placement.alone() } else { placement.clone() };
                            let configuration =
                                self.configuration(name, kind.made_of, [tasks, yields, size], placement);
                            if kind.takes(yields) && !configurations.contains(&configuration) {
                                configurations.push(configuration);
                            }
                        }
                    }
                }
            }
        }
        Plan::new("tasks", configurations, self.blocks, self.seed)
    }

    fn configuration(
        &self,
        name: &str,
        made_of: MadeOf,
        [tasks, yields, size]: [u32; 3],
        placement: Placement,
    ) -> Configuration {
        Configuration {
            contexts: match made_of {
                MadeOf::Processes => Contexts::Processes,
                MadeOf::Code | MadeOf::Threads => Contexts::Threads,
            },
            placement,
            size,
            ..Configuration::new(name, Pattern::Tasks { tasks, yields }, self.until)
        }
    }
}

/// The experiments of the study whose claims a run is held against:
/// its two comparisons over its own numbers of tasks, its queue beside
/// one that is O(1), its way of measuring beside a cycle counter.
pub fn of_the_study(asked: &Tasks) -> Plan {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let switching = [
        "call",
        "stackless",
        "stackless-rotating",
        "process-pair",
        "process-pair-rotating",
        "process-futex",
        "timer-ticks",
    ];
    let mut making = MAKING.to_vec();
    making.extend(BOARD.iter().filter(|tasks| !MAKING.contains(tasks)));
    let switching =
        Tasks { kinds: names(&switching), tasks: SWITCHING.to_vec(), yields: vec![1], ..asked.clone() };
    let making = Tasks { kinds: names(&["life-future", "life-fork"]), tasks: making, ..asked.clone() };
    let mut plan = switching.plan();
    plan.configurations.extend(making.plan().configurations);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Tasks {
        let pinned = |cpus| Placement { relation: "x".to_owned(), cpus: Some(cpus) };
        Tasks {
            kinds: task::all().iter().map(|kind| kind.name.to_owned()).collect(),
            tasks: vec![10, 1000],
            yields: vec![1, 100],
            working_sets: vec![0, 4096],
            placements: vec![pinned([1, 1]), pinned([1, 0])],
            until: Until::count(1),
            blocks: 1,
            seed: 1,
        }
    }

    #[test]
    fn the_study_is_planned_whole_and_every_claim_about_it_finds_its_configurations() {
        let plan = of_the_study(&tasks());
        let distinct: std::collections::HashSet<&Configuration> = plan.configurations.iter().collect();
        assert_eq!(distinct.len(), plan.configurations.len());
        let of = |name: &str| {
            plan.configurations.iter().filter(|configuration| configuration.subject == name).count()
        };
        assert_eq!((of("stackless-rotating"), of("life-fork")), (2 * 8, 13));
    }

    #[test]
    fn code_runs_on_one_cpu_and_no_configuration_is_planned_twice() {
        let plan = tasks().plan();
        let distinct: std::collections::HashSet<&Configuration> = plan.configurations.iter().collect();
        assert_eq!(distinct.len(), plan.configurations.len());
        let of = |name: &str| {
            plan.configurations.iter().filter(|configuration| configuration.subject == name).count()
        };
        assert_eq!(of("stackless"), 2 * 2 * 2);
        assert_eq!(of("process-futex"), 2 * 2 * 2 * 2);
    }
}

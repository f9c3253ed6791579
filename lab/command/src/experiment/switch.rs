// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell switch` as a plan: operations of the kernel, each where and how it makes sense.

use doorbell_results::configuration::{Configuration, Pattern, Placement, Scheduler, Until};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::Contexts;
use doorbell_subjects::operation;

#[derive(Debug, Clone)]
pub struct Switch {
    pub operations: Vec<String>,
    /// Two processes, two threads, or both.
    pub contexts: Vec<Contexts>,
    /// Where two sides run; an operation of one side runs where the
    /// first of them has its first CPU.
    pub placements: Vec<Placement>,
    pub schedulers: Vec<Scheduler>,
    /// Working sets in bytes, written by each side before each switch.
    pub working_sets: Vec<u32>,
    /// Operations between two clock readings; none takes each operation's own number.
    pub batch: Option<u32>,
    pub until: Until,
    pub blocks: u32,
    pub seed: u64,
}

/// The working sets of a sweep that names none: a page, then up to
/// more than a second-level cache holds.
pub const WORKING_SETS: [u32; 7] = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

impl Switch {
    /// The plan: every configuration that makes sense.
    pub fn plan(&self) -> Plan {
        let configurations = self.operations.iter().flat_map(|name| self.configurations(name)).collect();
        Plan::new("switch", configurations, self.blocks, self.seed)
    }

    fn configurations(&self, name: &str) -> Vec<Configuration> {
        let Ok(operation) = operation::find(name) else { return Vec::new() };
        let mut configurations = Vec::new();
        for (number, placement) in self.placements.iter().enumerate() {
            let joined = self.contexts.iter().filter(|contexts| operation.joins(**contexts));
            for (rank, &contexts) in joined.enumerate() {
                for (order, &scheduler) in self.schedulers.iter().enumerate() {
                    for &size in &self.working_sets {
                        // One side has nobody to be placed against, to
                        // share memory with or to be preferred over.
                        let alone = !operation.form.two_sided;
                        if alone && (number, rank, order) != (0, 0, 0) {
                            continue;
                        }
                        let one_core = placement.cpus.is_some_and(|[a, b]| a == b);
                        if !alone && one_core && !operation.shares_a_core {
                            continue;
                        }
                        if !uses_size(name, size, alone) {
                            continue;
                        }
                        let placement = if alone { placement.alone() } else { placement.clone() };
                        configurations.push(Configuration {
                            contexts,
                            placement,
                            size,
                            scheduler,
                            ..Configuration::new(
                                name,
                                Pattern::Operation { batch: self.batch.unwrap_or(operation.form.batch) },
                                self.until,
                            )
                        });
                    }
                }
            }
        }
        configurations
    }
}

/// Whether a working set of `size` means something to the operation:
/// `touch` is nothing without one, a call or a fault knows none, and two
/// sides that only yield have no hand-over before which to write it.
fn uses_size(name: &str, size: u32, alone: bool) -> bool {
    match name {
        "touch" => size > 0,
        "switch-yield" | "timetctxsw2" => size == 0,
        // The protocols of other tools write none.
        _ if operation::find(name).is_ok_and(|operation| !operation.usual) => size == 0,
        _ => size == 0 || !alone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch() -> Switch {
        let on = |relation: &str, cpus| Placement { relation: relation.to_owned(), cpus: Some(cpus) };
        Switch {
            operations: operation::all().iter().map(|operation| operation.name.to_owned()).collect(),
            contexts: vec![Contexts::Processes, Contexts::Threads],
            placements: vec![on("same-core", [3, 3]), on("same-l3", [3, 4])],
            schedulers: vec![Scheduler::Other, Scheduler::Fifo],
            working_sets: WORKING_SETS.to_vec(),
            batch: None,
            until: Until::count(1),
            blocks: 1,
            seed: 1,
        }
    }

    #[test]
    fn an_operation_of_one_side_is_measured_once_and_on_the_first_cpu() {
        let plan = switch().plan();
        let calls: Vec<&Configuration> =
            plan.configurations.iter().filter(|configuration| configuration.subject == "getppid").collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].placement.cpus, Some([3, 3]));
    }

    #[test]
    fn every_switch_with_a_working_set_has_the_same_set_alone_beside_it() {
        let plan = switch().plan();
        let sizes = |name: &str| -> std::collections::BTreeSet<u32> {
            plan.configurations
                .iter()
                .filter(|configuration| configuration.subject == name)
                .map(|configuration| configuration.size)
                .collect()
        };
        let with: std::collections::BTreeSet<u32> =
            sizes("switch-futex").into_iter().filter(|size| *size > 0).collect();
        assert_eq!(with, sizes("touch"));
    }

    #[test]
    fn no_configuration_is_planned_twice() {
        let plan = switch().plan();
        let distinct: std::collections::HashSet<&Configuration> = plan.configurations.iter().collect();
        assert_eq!(distinct.len(), plan.configurations.len());
    }

    #[test]
    fn processes_do_not_play_what_only_threads_can() {
        let plan = switch().plan();
        assert!(plan.configurations.iter().any(|configuration| configuration.subject == "timetctxsw2"));
        assert!(
            plan.configurations
                .iter()
                .filter(|configuration| configuration.subject == "timetctxsw2")
                .all(|configuration| configuration.contexts == Contexts::Threads && configuration.size == 0)
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell gate` as a plan: wake-ups due at fixed times of a waiter that was left to sleep, on
//! every CPU, for as long as it is to be believed.

use std::time::Duration;

use doorbell_results::configuration::{Configuration, Pattern, Placement, Scheduler, Timing, Until};
use doorbell_results::machine::topology::Topology;
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::Contexts;

#[derive(Debug, Clone)]
pub struct Gate {
    pub subject: String,
    /// Two processes or two threads.
    pub contexts: Contexts,
    pub placements: Vec<Placement>,
    /// What wakes, and when.
    pub pattern: Pattern,
    /// How long all trials together measure.
    pub time: Duration,
    /// How the sides are scheduled.
    pub scheduler: Scheduler,
    /// Repetitions, if not the usual number.
    pub blocks: Option<u32>,
    pub seed: u64,
}

/// How long a trial is, if that leaves [`BLOCKS`]: long against what it costs to set one up.
const WINDOW: Duration = Duration::from_secs(5);

/// Fewest and most blocks unless told otherwise: how unlike they are
/// tells how much the wakes of one are alike.
const BLOCKS: std::ops::RangeInclusive<u128> = 10..=200;

impl Gate {
    pub fn plan(&self) -> Plan {
        let each = self.time / u32::try_from(self.placements.len().max(1)).unwrap_or(u32::MAX);
        let usual = (each.as_nanos() / WINDOW.as_nanos()).clamp(*BLOCKS.start(), *BLOCKS.end()) as u32;
        let blocks = self.blocks.unwrap_or(usual);
        let configuration = |placement: &Placement| Configuration {
            contexts: self.contexts,
            timing: Timing::Stamp,
            placement: placement.clone(),
            scheduler: self.scheduler,
            ..Configuration::new(self.subject.clone(), self.pattern, Until::time(each / blocks.max(1)))
        };
        let configurations = self.placements.iter().map(configuration).collect();
        Plan {
            // Where the longest is asked for, a trial left out because
            // of interference would be the very answer left out.
            repeat_on_interference: false,
            ..Plan::new("gate", configurations, blocks, self.seed)
        }
    }
}

/// Placements in which every CPU is waited on once: each is woken from the one before it.
pub fn ring(topology: &Topology) -> Vec<Placement> {
    let cpus: Vec<u32> = topology.usable.iter().collect();
    let pair = |index: usize| [cpus[(index + cpus.len() - 1) % cpus.len()], cpus[index]];
    (0..cpus.len())
        .map(pair)
        .map(|[a, b]| Placement { relation: topology.relation(a, b).name().to_owned(), cpus: Some([a, b]) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn gate(time: Duration, placements: usize) -> Plan {
        let placement = |cpu| Placement { relation: "same-l3".to_owned(), cpus: Some([0, cpu]) };
        Gate {
            subject: "futex".to_owned(),
            contexts: Contexts::Processes,
            placements: (0..placements as u32).map(placement).collect(),
            pattern: Pattern::OpenLoop { gap_ns: 1_000_000 },
            time,
            scheduler: Scheduler::Other,
            blocks: None,
            seed: 1,
        }
        .plan()
    }

    #[test]
    fn all_trials_together_measure_as_long_as_was_asked() {
        for (time, placements) in [(600, 1), (600, 64), (3, 2)] {
            let time = Duration::from_secs(time);
            let plan = gate(time, placements);
            let window: u64 =
                plan.configurations.iter().map(|configuration| configuration.until.time_ns.unwrap()).sum();
            let whole = Duration::from_nanos(window) * plan.blocks;
            assert!(whole <= time && whole > time * 99 / 100, "{whole:?} of {time:?}");
            assert!((10..=200).contains(&plan.blocks), "{}", plan.blocks);
        }
    }

    #[test]
    fn no_trial_is_done_over_because_of_interference() {
        assert_eq!(gate(Duration::from_secs(60), 2).repeats(), 0);
    }

    #[test]
    fn every_cpu_is_waited_on_once() {
        let topology = &sample::result(&[], 0, |_, _| 0.0).machine.topology;
        let mut topology = topology.clone();
        topology.usable = [0, 1, 2, 5].into_iter().collect();
        let pairs: Vec<[u32; 2]> = ring(&topology).iter().filter_map(|placement| placement.cpus).collect();
        assert_eq!(pairs, [[5, 0], [0, 1], [1, 2], [2, 5]]);
        topology.usable = [3].into_iter().collect();
        assert_eq!(ring(&topology)[0].cpus, Some([3, 3]));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pairs` as a plan: every pair of CPUs, or, where there
//! are too many for the time, an even sample of them.
//!
//! A machine of N CPUs has N(N−1)/2 pairs: 8128 for 128 CPUs. Measuring them takes the time of a
//! trial each, and no two at once, which would measure their disturbing each other. So the plan
//! keeps to a budget: trials get shorter down to `SHORTEST`, then blocks fewer down to one, and
//! only then are pairs left out. Those kept are the rounds of a tournament: in each round every CPU
//! meets one partner it has not met, so after any number of rounds no CPU has been looked at more
//! often than another; and one pair of each relation is always among them.

use std::collections::BTreeSet;
use std::time::Duration;

use doorbell_results::configuration::{Configuration, Pattern, Placement, Until};
use doorbell_results::machine::topology::{Relation, Topology};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::{self, Contexts, Waits};

#[derive(Debug, Clone)]
pub struct Pairs {
    pub mechanisms: Vec<String>,
    /// Two processes or two threads.
    pub contexts: Contexts,
    /// The CPUs to be paired; none takes every usable one.
    pub cpus: Option<Vec<u32>>,
    /// Whether each pair is measured both ways round.
    pub both_ways: bool,
    /// Nanoseconds between rounds.
    pub gap_ns: u64,
    /// Time the whole run may take.
    pub budget: Duration,
    pub blocks: u32,
    /// Seed of the orders and of the sample.
    pub seed: u64,
}

/// A plan, and how much of the machine it covers.
#[derive(Debug, Clone)]
pub struct Sample {
    pub plan: Plan,
    /// Pairs of different CPUs there are.
    pub all: usize,
    /// Pairs of different CPUs the plan has.
    pub measured: usize,
}

/// The longest window of a trial: what an interval over blocks needs is blocks, not longer trials.
const LONGEST: Duration = Duration::from_millis(50);
/// The shortest: some hundred wakes of the slowest kind, some ten thousand spins.
const SHORTEST: Duration = Duration::from_millis(5);
/// What a trial takes beside its window: starting its processes, warming up, gathering the reports.
const AROUND_A_TRIAL: Duration = Duration::from_millis(25);

impl Pairs {
    /// The plan for a machine of this `topology`.
    pub fn plan(&self, topology: &Topology) -> Sample {
        let cpus: Vec<u32> = self.cpus.clone().unwrap_or_else(|| topology.usable.iter().collect());
        let mut random = fastrand::Rng::with_seed(self.seed);
        let order = tournament(&cpus, &mut random);
        let all = order.len();
        let ways = if self.both_ways { 2 } else { 1 };
        let per_pair = ways * self.mechanisms.len();
        let others = cpus.len() * self.taking_turns() + self.mechanisms.len();

        let least = (SHORTEST.max(self.window_of_gaps()) + AROUND_A_TRIAL).as_nanos();
        let affordable = (self.budget.as_nanos() / least.max(1)) as usize;
        let room = affordable.saturating_sub(others) / per_pair.max(1);
        let representatives = representatives(&cpus, topology);
        let kept: Vec<[u32; 2]> = if all <= room {
            order
        } else {
            let always: BTreeSet<[u32; 2]> = representatives.into_iter().collect();
            let rest = order.into_iter().filter(|pair| !always.contains(pair));
            always.iter().copied().chain(rest).take(room.max(always.len())).collect()
        };
        let trials = kept.len() * per_pair + others;
        let blocks = (affordable / trials.max(1)).clamp(1, self.blocks as usize);
        let share = self.budget.as_nanos() / (trials * blocks).max(1) as u128;
        let window = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
            .saturating_sub(AROUND_A_TRIAL)
            .clamp(SHORTEST, LONGEST)
            .max(self.window_of_gaps());

        let measured = kept.len();
        let configurations = self.configurations(&cpus, &kept, topology, window);
        let plan = Plan::new("pairs", configurations, blocks as u32, self.seed);
        Sample { plan, all, measured }
    }

    fn configurations(
        &self,
        cpus: &[u32],
        kept: &[[u32; 2]],
        topology: &Topology,
        window: Duration,
    ) -> Vec<Configuration> {
        let mut configurations = Vec::new();
        for subject in &self.mechanisms {
            let mut add = |relation: Option<Relation>, pair: Option<[u32; 2]>| {
                configurations.push(Configuration {
                    contexts: self.contexts,
                    placement: Placement {
                        relation: relation.map_or("unpinned", Relation::name).to_owned(),
                        cpus: pair,
                    },
                    ..Configuration::new(
                        subject.clone(),
                        Pattern::PingPong { gap_ns: self.gap_ns },
                        Until::time(window),
                    )
                });
            };
            // What pinning gains is seen only beside what the scheduler makes of the same thing.
            add(None, None);
            if takes_turns(subject) {
                for &cpu in cpus {
                    add(Some(Relation::SameCore), Some([cpu, cpu]));
                }
            }
            for &[a, b] in kept {
                add(Some(topology.relation(a, b)), Some([a, b]));
                if self.both_ways {
                    add(Some(topology.relation(b, a)), Some([b, a]));
                }
            }
        }
        configurations
    }

    fn taking_turns(&self) -> usize {
        self.mechanisms.iter().filter(|name| takes_turns(name)).count()
    }

    /// A window must hold some rounds whatever the gap between them.
    fn window_of_gaps(&self) -> Duration {
        Duration::from_nanos(self.gap_ns.saturating_mul(10))
    }
}

/// Whether both sides of a mechanism can share one CPU and still get
/// anywhere: spinning sides cannot.
fn takes_turns(name: &str) -> bool {
    mechanism::find(name)
        .is_ok_and(|entry| matches!(entry.notification().waits, Waits::Blocks | Waits::Yields))
}

/// Every pair once, the lower CPU first, in the rounds of a tournament drawn at random (the circle
/// method: one place stays, the others move on by one each round).
fn tournament(cpus: &[u32], random: &mut fastrand::Rng) -> Vec<[u32; 2]> {
    let mut places: Vec<Option<u32>> = cpus.iter().copied().map(Some).collect();
    random.shuffle(&mut places);
    if places.len() % 2 == 1 {
        // Whoever meets nobody sits the round out.
        places.push(None);
    }
    let mut pairs = Vec::new();
    for _ in 1..places.len() {
        for (first, second) in places.iter().zip(places.iter().rev()).take(places.len() / 2) {
            if let (Some(a), Some(b)) = (first, second) {
                pairs.push([*a.min(b), *a.max(b)]);
            }
        }
        places[1..].rotate_right(1);
    }
    pairs
}

/// The first pair of each relation between different CPUs.
fn representatives(cpus: &[u32], topology: &Topology) -> Vec<[u32; 2]> {
    let mut seen = BTreeSet::new();
    let mut pairs = Vec::new();
    for (index, &a) in cpus.iter().enumerate() {
        for &b in &cpus[index + 1..] {
            if seen.insert(topology.relation(a, b)) {
                pairs.push([a.min(b), a.max(b)]);
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::machine::topology::Cpu;
    use std::collections::BTreeMap;

    /// Two packages of 32 cores with two hardware threads each, eight
    /// cores behind each third-level cache.
    fn two_packages_of_64() -> Topology {
        let list = |ids: Vec<u32>| {
            let text: Vec<String> = ids.iter().map(u32::to_string).collect();
            text.join(",").parse().unwrap()
        };
        let core = |id: u32| id % 64;
        let cpu = |id: u32| {
            let l3 = core(id) / 8;
            Cpu {
                id,
                package: Some((core(id) / 32) as i32),
                core: Some(core(id) as i32),
                node: Some(core(id) / 32),
                smt: Some(list(vec![core(id), core(id) + 64])),
                l2: Some(list(vec![core(id), core(id) + 64])),
                l3: Some(list((0..128).filter(|other| core(*other) / 8 == l3).collect())),
                ..Cpu::default()
            }
        };
        Topology {
            online: list((0..128).collect()),
            usable: list((0..128).collect()),
            cpus: (0..128).map(cpu).collect(),
            ..Topology::default()
        }
    }

    fn pairs(budget: Duration) -> Pairs {
        Pairs {
            mechanisms: vec!["spin".to_owned()],
            contexts: Contexts::Processes,
            cpus: None,
            both_ways: false,
            gap_ns: 0,
            budget,
            blocks: 3,
            seed: 7,
        }
    }

    fn pinned(plan: &Plan) -> Vec<[u32; 2]> {
        plan.configurations.iter().filter_map(|configuration| configuration.placement.cpus).collect()
    }

    #[test]
    fn time_enough_measures_every_pair_once_a_block_and_the_scheduler_beside_them() {
        let sample = pairs(Duration::from_secs(3600)).plan(&two_packages_of_64());
        assert_eq!((sample.all, sample.measured), (8128, 8128));
        let distinct: BTreeSet<[u32; 2]> = pinned(&sample.plan).into_iter().collect();
        assert_eq!(distinct.len(), 8128);
        assert!(distinct.iter().all(|[a, b]| a < b));
        assert_eq!(
            sample
                .plan
                .configurations
                .iter()
                .filter(|configuration| configuration.placement.cpus.is_none())
                .count(),
            1
        );
        assert_eq!(sample.plan.blocks, 3);
    }

    #[test]
    fn a_minute_takes_an_even_sample_that_has_every_relation() {
        let topology = two_packages_of_64();
        let sample = pairs(Duration::from_secs(60)).plan(&topology);
        assert!(sample.measured < sample.all && sample.measured > 128, "{}", sample.measured);
        let mut met: BTreeMap<u32, usize> = BTreeMap::new();
        for cpu in pinned(&sample.plan).into_iter().flatten() {
            *met.entry(cpu).or_default() += 1;
        }
        let (least, most) = (met.values().min().unwrap(), met.values().max().unwrap());
        assert_eq!(met.len(), 128, "every CPU is looked at");
        // One round more or less, and the pairs kept for their relation.
        assert!(most - least <= 5, "{least} to {most} partners");
        let relations: BTreeSet<&str> = sample
            .plan
            .configurations
            .iter()
            .map(|configuration| configuration.placement.relation.as_str())
            .collect();
        assert_eq!(
            relations,
            BTreeSet::from(["other-node", "same-l3", "same-node", "smt-sibling", "unpinned"])
        );
    }

    #[test]
    fn the_plan_keeps_to_its_budget() {
        let topology = two_packages_of_64();
        for seconds in [20, 60, 300, 3600] {
            let budget = Duration::from_secs(seconds);
            let plan = pairs(budget).plan(&topology).plan;
            let window = Duration::from_nanos(plan.configurations[0].until.time_ns.unwrap());
            let takes = (window + AROUND_A_TRIAL) * plan.configurations.len() as u32 * plan.blocks;
            assert!(takes <= budget, "{takes:?} of {budget:?}");
        }
    }

    #[test]
    fn sides_that_can_take_turns_also_share_each_cpu() {
        let mut pairs = pairs(Duration::from_secs(36_000));
        pairs.mechanisms = vec!["futex".to_owned(), "spin".to_owned()];
        let plan = pairs.plan(&two_packages_of_64()).plan;
        let diagonal: Vec<&Configuration> = plan
            .configurations
            .iter()
            .filter(|configuration| configuration.placement.cpus.is_some_and(|[a, b]| a == b))
            .collect();
        assert_eq!(diagonal.len(), 128);
        assert!(diagonal.iter().all(|configuration| configuration.subject == "futex"));
    }

    #[test]
    fn both_ways_doubles_the_pairs_and_keeps_their_number() {
        let mut pairs = pairs(Duration::from_secs(36_000));
        pairs.both_ways = true;
        pairs.cpus = Some(vec![0, 1, 64]);
        let sample = pairs.plan(&two_packages_of_64());
        assert_eq!(sample.all, 3);
        assert_eq!(
            pinned(&sample.plan).into_iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([[0, 1], [1, 0], [0, 64], [64, 0], [1, 64], [64, 1]])
        );
    }

    #[test]
    fn one_cpu_has_no_pairs_and_two_have_one() {
        let mut pairs = pairs(Duration::from_secs(60));
        pairs.cpus = Some(vec![5]);
        assert_eq!(pairs.plan(&two_packages_of_64()).all, 0);
        pairs.cpus = Some(vec![5, 9]);
        assert_eq!(pinned(&pairs.plan(&two_packages_of_64()).plan), vec![[5, 9]]);
    }
}

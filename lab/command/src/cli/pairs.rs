// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pairs`: every pair of CPUs, or, where there are too many for the time, an even sample
//! of them.
//!
//! A machine of N CPUs has N(N−1)/2 pairs: 8128 for 128 CPUs. Measuring them takes the time of a
//! trial each, and no two at once, which would measure their disturbing each other. So the plan
//! keeps to a budget: trials get shorter down to `SHORTEST`, then blocks fewer down to one, and
//! only then are pairs left out. Those kept are the rounds of a tournament: in each round every CPU
//! meets one partner it has not met, so after any number of rounds no CPU has been looked at more
//! often than another; and one pair of each relation is always among them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::common::{RunArgs, once};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::placements::{on, unpinned};
use super::sides::contexts;
use super::usage::{Usage, refuse};
use doorbell_results::configuration::{Configuration, Pattern, Until};
use doorbell_results::machine::Machine;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::topology::Topology;
use doorbell_results::plan::FEWEST_BLOCKS;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, span};
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{ResultFile, Warning, warning};
use doorbell_subjects::mechanism::{self, Waits};

/// Arguments of `doorbell pairs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell pairs                        a wake-up by futex, and the cache line, between every two CPUs\n  \
    doorbell pairs spin                   the cache line alone\n  \
    doorbell pairs --cpus 0-7 --both-ways each direction of the first eight CPUs\n  \
    doorbell pairs --budget 10m           all 8128 pairs of a machine with 128 CPUs")]
pub struct Args {
    /// Mechanisms (`doorbell list` shows them)
    #[arg(default_values = ["futex", "spin"], value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// CPUs to pair, such as 0-3,8 [default: all this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    /// Measure each pair both ways round
    #[arg(long)]
    both_ways: bool,
    /// Time between rounds
    #[arg(long, value_parser = gap, default_value = "0", value_name = "TIME")]
    gap: Duration,
    /// Time the run may take; pairs are sampled evenly when it is too little for all
    #[arg(long, value_parser = span, default_value = "60s", value_name = "TIME")]
    budget: Duration,
    #[command(flatten)]
    run: RunArgs,
}

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "pairs", sections: &["pairs"], ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        Ok(self.sample(&machine.topology)?.plan)
    }
    fn complete(&self, result: &mut ResultFile) {
        let sample = match self.run.plan {
            None => self.sample(&result.machine.topology).ok(),
            Some(_) => None,
        };
        result.warnings.extend(sample.and_then(|sample| left_out(&sample, self.budget)));
    }
}

/// The warning that not every pair was measured.
fn left_out(sample: &Sample, budget: Duration) -> Option<Warning> {
    (sample.measured < sample.all).then(|| Warning {
        name: warning::PAIRS_SAMPLED.name.to_owned(),
        cause: format!("{budget:?} is enough for {} of {} pairs", sample.measured, sample.all),
        effect: "the best and the worst pair are those of the sample: each CPU with equally many \
            partners, and at least one pair of every relation"
            .to_owned(),
        cure: "give a longer --budget, or fewer CPUs with --cpus".to_owned(),
    })
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

impl Args {
    /// The pairs that the arguments ask for and their time allows.
    pub fn sample(&self, topology: &Topology) -> Result<Sample, Usage> {
        for name in &self.mechanisms {
            mechanism::find(name).map_err(Usage::of)?;
        }
        let mut mechanisms = self.mechanisms.clone();
        once(&mut mechanisms);
        let cpus: Vec<u32> = self.cpus.as_ref().unwrap_or(&topology.usable).iter().collect();
        topology.check(&cpus).map_err(Usage::of)?;
        let order = tournament(&cpus, &mut fastrand::Rng::with_seed(self.run.seed()));
        let all = order.len();
        if all == 0 {
            return refuse(format!(
                "there is no pair to measure: this process may use the CPUs {}, and a pair takes two",
                topology.usable
            ));
        }
        let ways = if self.both_ways { 2 } else { 1 };
        let per_pair = ways * mechanisms.len();
        let taking_turns = mechanisms.iter().filter(|name| takes_turns(name)).count();
        let others = cpus.len() * taking_turns + mechanisms.len();

        // A window must hold some rounds whatever the gap between them.
        let of_gaps = self.gap.saturating_mul(10);
        let least = (SHORTEST.max(of_gaps) + AROUND_A_TRIAL).as_nanos();
        let affordable = (self.budget.as_nanos() / least.max(1)) as usize;
        let room = affordable.saturating_sub(others) / per_pair.max(1);
        let kept: Vec<[u32; 2]> = if all <= room {
            order
        } else {
            let always = representatives(&cpus, topology);
            let rest = order.into_iter().filter(|pair| !always.contains(pair));
            always.iter().copied().chain(rest).take(room.max(always.len())).collect()
        };
        let trials = kept.len() * per_pair + others;
        let blocks = self.run.blocks.unwrap_or(FEWEST_BLOCKS) as usize;
        let blocks = (affordable / trials.max(1)).clamp(1, blocks);
        let share = self.budget.as_nanos() / (trials * blocks).max(1) as u128;
        let window = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
            .saturating_sub(AROUND_A_TRIAL)
            .clamp(SHORTEST, LONGEST)
            .max(of_gaps);

        let pattern = Pattern::PingPong { gap_ns: ns(self.gap) };
        let pinned = |cpus| on(cpus, topology);
        let mut configurations = Vec::new();
        for subject in &mechanisms {
            // What pinning gains is seen only beside what the scheduler makes of the same thing.
            let mut placements = vec![unpinned()];
            if takes_turns(subject) {
                placements.extend(cpus.iter().map(|cpu| pinned([*cpu; 2])));
            }
            for &[a, b] in &kept {
                placements.extend([[a, b], [b, a]].into_iter().take(ways).map(pinned));
            }
            configurations.extend(placements.into_iter().map(|placement| Configuration {
                contexts: self.contexts,
                placement,
                ..Configuration::new(&**subject, pattern, Until::time(window))
            }));
        }
        let plan = Plan::new("pairs", configurations, blocks as u32, self.run.seed());
        Ok(Sample { plan, all, measured: kept.len() })
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
fn representatives(cpus: &[u32], topology: &Topology) -> BTreeSet<[u32; 2]> {
    let mut seen = BTreeSet::new();
    let pairs = cpus.iter().enumerate().flat_map(|(at, a)| cpus[at + 1..].iter().map(|b| [*a, *b]));
    pairs.filter(|[a, b]| seen.insert(topology.relation(*a, *b))).map(|[a, b]| [a.min(b), a.max(b)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;
    use doorbell_results::machine::topology::Cpu;
    use std::collections::BTreeMap;

    /// Two packages of 32 cores with two hardware threads each, eight
    /// cores to each third-level cache.
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

    fn sample(words: &str) -> Sample {
        typed::<Args>(&format!("--seed 7 {words}")).sample(&two_packages_of_64()).unwrap()
    }

    fn pinned(plan: &Plan) -> Vec<[u32; 2]> {
        plan.configurations.iter().filter_map(|configuration| configuration.placement.cpus).collect()
    }

    #[test]
    fn time_enough_measures_every_pair_once_a_block_and_the_scheduler_beside_them() {
        let sample = sample("spin --budget 1h --blocks 3");
        assert_eq!((sample.all, sample.measured), (8128, 8128));
        let distinct: BTreeSet<[u32; 2]> = pinned(&sample.plan).into_iter().collect();
        assert_eq!(distinct.len(), 8128);
        assert!(distinct.iter().all(|[a, b]| a < b));
        assert_eq!(sample.plan.configurations.len(), 1 + 8128);
        assert_eq!(sample.plan.blocks, 3);
    }

    #[test]
    fn a_minute_takes_an_even_sample_that_has_every_relation() {
        let sample = sample("spin --budget 60s");
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
        for seconds in [20, 60, 300, 3600] {
            let budget = Duration::from_secs(seconds);
            let plan = sample(&format!("spin --budget {seconds}s")).plan;
            let window = Duration::from_nanos(plan.configurations[0].until.time_ns.unwrap());
            let takes = (window + AROUND_A_TRIAL) * plan.configurations.len() as u32 * plan.blocks;
            assert!(takes <= budget, "{takes:?} of {budget:?}");
        }
    }

    #[test]
    fn sides_that_can_take_turns_also_share_each_cpu() {
        let plan = sample("futex spin --budget 10h").plan;
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
        let sample = sample("spin --budget 10h --both-ways --cpus 0,1,64");
        assert_eq!(sample.all, 3);
        assert_eq!(
            pinned(&sample.plan).into_iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([[0, 1], [1, 0], [0, 64], [64, 0], [1, 64], [64, 1]])
        );
    }

    #[test]
    fn one_cpu_has_no_pairs_and_two_have_one() {
        assert!(typed::<Args>("--cpus 5").sample(&two_packages_of_64()).is_err());
        assert_eq!(pinned(&sample("spin --cpus 5,9").plan), vec![[5, 9]]);
    }
}

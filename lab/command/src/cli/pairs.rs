// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pairs`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal, once};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::sides::contexts;
use super::usage::Usage;
use crate::experiment::pairs::{Pairs, Sample};
use doorbell_results::machine::Machine;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::plan::FEWEST_BLOCKS;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, span};
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{Warning, warning};
use doorbell_subjects::mechanism;

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
    fn name(&self) -> &'static str {
        "pairs"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        Ok(sample(self, machine)?.plan)
    }
    fn sections(&self) -> &'static [&'static str] {
        &["pairs"]
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        let args = self;
        let machine = args.run.machine()?;
        let plan = args.planned(&machine)?;
        if args.run.only_planned() {
            return args.run.measure_and_deliver(plan, machine, terminal);
        }
        let warning = match &args.run.plan {
            Some(_) => None,
            None => left_out(&sample(&args, &machine)?, args.budget),
        };
        let mut result = args.run.measure(plan, machine, terminal)?;
        result.warnings.extend(warning);
        args.run.deliver(&result, terminal)
    }
}

/// The pairs that the arguments ask for and their time allows.
fn sample(args: &Args, machine: &Machine) -> anyhow::Result<Sample> {
    let topology = &machine.topology;
    for name in &args.mechanisms {
        mechanism::find(name).map_err(|unknown| Usage(unknown.to_string()))?;
    }
    let mut mechanisms = args.mechanisms.clone();
    once(&mut mechanisms);
    let cpus = match &args.cpus {
        Some(list) => {
            let cpus: Vec<u32> = list.iter().collect();
            topology.check(&cpus).map_err(|error| Usage(error.to_string()))?;
            Some(cpus)
        }
        None => None,
    };
    let pairs = Pairs {
        mechanisms,
        contexts: args.contexts,
        cpus,
        both_ways: args.both_ways,
        gap_ns: u64::try_from(args.gap.as_nanos()).unwrap_or(u64::MAX),
        budget: args.budget,
        blocks: args.run.blocks.unwrap_or(FEWEST_BLOCKS),
        seed: args.run.seed(),
    };
    let sample = pairs.plan(topology);
    if sample.all == 0 {
        return Err(Usage(format!(
            "there is no pair to measure: this process may use the CPUs {}, and a pair takes two",
            topology.usable
        ))
        .into());
    }
    Ok(sample)
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

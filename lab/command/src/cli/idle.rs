// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell idle`.

use std::time::Duration;

use clap::ValueEnum;

use super::common::{Exit, RunArgs, Terminal, once};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::out::aside;
use super::usage::Usage;
use crate::experiment::idle::{GAPS, Idle, lacks};
use doorbell_results::configuration::{Placement, Until};
use doorbell_results::machine::Machine;
use doorbell_results::plan::FEWEST_BLOCKS;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{some_gap, span};
use doorbell_subjects::mechanism::{self, Waits};
use doorbell_verdict::claims::idling;

/// Arguments of `doorbell idle`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell idle                             a futex after sleeps of 10 us to 100 ms, as it is and with idle states held off\n  \
    doorbell idle --gap 50us,1s eventfd pipe  other mechanisms, other sleeps\n  \
    doorbell idle --hold off                  as it is, alone: needs no permission\n  \
    doorbell idle --limit 20                  idle states that take longer than 20 us to leave held off")]
pub struct Args {
    /// Mechanisms that sleep (`doorbell list`)
    #[arg(value_name = "MECHANISM", default_value = "futex", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// How long the waiter sleeps, comma separated [default: 10us to 100ms, three to a decade]
    #[arg(long, value_delimiter = ',', value_parser = some_gap, value_name = "TIME")]
    gap: Vec<Duration>,
    /// Whether idle states are held off by /dev/cpu_dma_latency while a trial runs
    #[arg(long, value_enum, default_value = "both", value_name = "WHEN")]
    hold: Hold,
    /// The longest time to leave an idle state that is then allowed, microseconds
    #[arg(long, default_value_t = 0, value_name = "US", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    limit: u32,
    /// The notifier's CPU and the waiter's [default: the first two this process may use]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "A,B")]
    cpus: Vec<u32>,
    /// Wake-ups of a trial [default: a time that the gap needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "time")]
    count: Option<u64>,
    /// Length of a trial [default: what the gap needs: 20 wake-ups, 50 ms to 1 s]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hold {
    /// Each gap with them and without
    Both,
    /// Never: the machine as it is
    Off,
    /// Always
    On,
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "idle"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        Ok(idle(self, machine)?.plan())
    }
    fn sections(&self) -> &'static [&'static str] {
        &["sleeps"]
    }
    fn claims(&self) -> Option<&'static str> {
        Some(idling::SOURCE.name)
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        let args = self;
        let machine = args.run.machine()?;
        let plan = args.planned(&machine)?;
        if !args.run.only_planned()
            && !terminal.quiet
            && let Some(reason) =
                plan.configurations.iter().find_map(|configuration| lacks(configuration, &machine))
        {
            aside!("doorbell: idle states cannot be held off: {reason}");
        }
        args.run.measure_and_deliver(plan, machine, terminal)
    }
}

fn idle(args: &Args, machine: &Machine) -> anyhow::Result<Idle> {
    let mut mechanisms = args.mechanisms.clone();
    for name in &mechanisms {
        let entry = mechanism::find(name).map_err(|unknown| Usage(unknown.to_string()))?;
        if entry.notification().waits != Waits::Blocks {
            return Err(Usage(format!(
                "{name} does not sleep, and what does not sleep leaves no idle state"
            ))
            .into());
        }
    }
    once(&mut mechanisms);
    let gaps = if args.gap.is_empty() { GAPS.to_vec() } else { args.gap.clone() };
    let ns = |gap: &Duration| u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
    Ok(Idle {
        mechanisms,
        gaps_ns: gaps.iter().map(ns).collect(),
        limits_us: match args.hold {
            Hold::Both => vec![None, Some(args.limit)],
            Hold::Off => vec![None],
            Hold::On => vec![Some(args.limit)],
        },
        placement: placement(&args.cpus, machine)?,
        until: args.count.map(Until::count).or(args.time.map(Until::time)),
        blocks: args.run.blocks.unwrap_or(FEWEST_BLOCKS),
        seed: args.run.seed(),
    })
}

fn placement(cpus: &[u32], machine: &Machine) -> anyhow::Result<Placement> {
    let topology = &machine.topology;
    let [first, second] = match *cpus {
        [] => topology.two_cores().ok_or_else(|| {
            Usage(format!(
                "the waiter's CPU can be idle only if the notifier has another, and this process may use {}",
                topology.usable
            ))
        })?,
        [first, second] => [first, second],
        _ => return Err(Usage("--cpus takes two CPUs: --cpus 0,1".to_owned()).into()),
    };
    topology.check(&[first, second]).map_err(|error| Usage(error.to_string()))?;
    if first == second {
        return Err(
            Usage("the waiter's CPU is not idle while the notifier runs on it; give two".to_owned()).into()
        );
    }
    let relation = topology.relation(first, second).name().to_owned();
    Ok(Placement { relation, cpus: Some([first, second]) })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell idle`.

use std::time::Duration;

use clap::ValueEnum;

use super::common::{Exit, RunArgs, Terminal, once};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::out::aside;
use super::ping::usual_window;
use super::placements::allowed;
use super::usage::{Usage, refuse};
use crate::run::subject::latency_limit;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until};
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
    #[arg(long, value_delimiter = ',', value_parser = some_gap, value_name = "TIME", default_value = GAPS, hide_default_value = true)]
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

/// From where no idle state pays to where every one does.
const GAPS: &str = "10us,30us,100us,300us,1ms,3ms,10ms,30ms,100ms";

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "idle", sections: &["sleeps"], claims: Some(idling::SOURCE.name), ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let mut mechanisms = self.mechanisms.clone();
        for name in &mechanisms {
            let entry = mechanism::find(name).map_err(Usage::of)?;
            if entry.notification().waits != Waits::Blocks {
                return refuse(format!(
                    "{name} does not sleep, and what does not sleep leaves no idle state"
                ));
            }
        }
        once(&mut mechanisms);
        let placement = placement(&self.cpus, machine)?;
        let until = self.count.map(Until::count).or(self.time.map(Until::time));
        let limits: &[_] = match self.hold {
            Hold::Both => &[None, Some(self.limit)],
            Hold::Off => &[None],
            Hold::On => &[Some(self.limit)],
        };
        let configuration = |subject: &str, gap: Duration, latency_limit_us| {
            let pattern = Pattern::OneWay { gap_ns: ns(gap) };
            Configuration {
                timing: Timing::Stamp,
                placement: placement.clone(),
                latency_limit_us,
                ..Configuration::new(subject, pattern, until.unwrap_or_else(|| usual_window(pattern)))
            }
        };
        // The harness's own cost, once in each run.
        let mut configurations = vec![configuration("null", self.gap[0], None)];
        for mechanism in &mechanisms {
            for &gap in &self.gap {
                for &limit in limits {
                    let configuration = configuration(mechanism, gap, limit);
                    if !configurations.contains(&configuration) {
                        configurations.push(configuration);
                    }
                }
            }
        }
        Ok(Plan::new("idle", configurations, self.run.blocks.unwrap_or(FEWEST_BLOCKS), self.run.seed()))
    }
    fn before(&self, plan: &Plan, machine: &Machine, terminal: &Terminal) -> anyhow::Result<Option<Exit>> {
        let reason = plan.configurations.iter().find_map(|one| latency_limit(one, machine));
        if let Some(reason) = reason.filter(|_| !terminal.quiet) {
            aside!("doorbell: idle states cannot be held off: {reason}");
        }
        Ok(None)
    }
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
        _ => return refuse("--cpus takes two CPUs: --cpus 0,1"),
    };
    let placement = allowed([first, second], topology)?;
    if first == second {
        return refuse("the waiter's CPU is not idle while the notifier runs on it; give two");
    }
    Ok(placement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{two_cpus, typed};
    use std::collections::HashSet;

    #[test]
    fn every_gap_is_planned_with_each_limit_and_the_harness_once() {
        for (words, limits) in [("--cpus 0,1", 2), ("--cpus 0,1 futex futex --hold off", 1)] {
            let plan = typed::<Args>(words).plan(&two_cpus()).unwrap();
            assert_eq!(plan.configurations.len(), 1 + limits * GAPS.split(',').count());
            let distinct: HashSet<&Configuration> = plan.configurations.iter().collect();
            assert_eq!(distinct.len(), plan.configurations.len());
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell survey`, also what a bare `doorbell` runs.

use std::time::Duration;

use super::common::RunArgs;
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::placements::{present, unpinned};
use crate::run::bench::{PAIRS, asked};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::bench::Bench;
use doorbell_results::plan::{LeftOut, Plan};
use doorbell_results::quantity::span;
use doorbell_results::record::Subject;
use doorbell_subjects::mechanism::{self, Contexts, Waits};
use doorbell_verdict::answer::{BARE_SPINNING, LIMIT_OF_SPINNING};

/// Arguments of `doorbell survey`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long it takes: figures and verdicts are the sharper the longer it is
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "20s")]
    time: Duration,
    #[command(flatten)]
    run: RunArgs,
}

/// The operation that is the limit of spinning.
const LIMIT: &str = "cache-line";

impl Experiment for Args {
    fn about(&self) -> About {
        About {
            name: "survey",
            sections: &["survey"],
            parts: vec![(LIMIT, LIMIT_OF_SPINNING), ("spin", BARE_SPINNING)],
            ..About::default()
        }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let plan = plan(&present(&machine.topology), self.time, self.run.seed());
        Ok(Plan { blocks: self.run.blocks.unwrap_or(plan.blocks), ..plan })
    }
}

/// What of it goes for the machine's clock and primitive costs, the doctor, and printing.
const AROUND: Duration = Duration::from_secs(1);

/// The window of what has trials of its own, and the most that others have of a pair.
const WINDOW: Duration = Duration::from_millis(10);
const MOST: Duration = Duration::from_millis(100);

/// The gaps the survey shows: a waiter hardly asleep, asleep, and long asleep.
const GAPS: [Duration; 4] = [
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
];

/// The mechanisms whose dependence on the gap is shown: one without and one with a descriptor.
const GAP_SUBJECTS: [&str; 2] = ["futex", "eventfd-epoll"];

/// The mechanisms run unpinned, to show what the scheduler makes of them.
const UNPINNED_SUBJECTS: [&str; 2] = ["futex", "pipe"];

/// The survey's plan for the placements this machine has, nearest first, which takes about `time`.
fn plan(placements: &[Placement], time: Duration, seed: u64) -> Plan {
    let mut configurations = Vec::new();
    let across: Vec<&Placement> = placements.iter().filter(|placement| !one_core(placement)).collect();
    let mut left_out = Vec::new();
    for entry in mechanism::usual() {
        if let Err(lack) = entry.available() {
            let subject = Subject::Mechanism(entry.notification());
            left_out.push(LeftOut { name: entry.name().to_owned(), subject, reason: Some(lack.reason) });
            continue;
        }
        let contexts = if entry.notification().joins(Contexts::Processes) {
            Contexts::Processes
        } else {
            Contexts::Threads
        };
        for placement in placements {
            if entry.notification().waits != Waits::Spins || !one_core(placement) {
                configurations.push(Configuration {
                    contexts,
                    ..configuration(entry.name(), Pattern::PingPong { gap_ns: 0 }, placement)
                });
            }
        }
    }
    // The nearest pair of different CPUs shows how a wake depends on the length of the sleep.
    if let Some(nearest) = across.first() {
        for subject in GAP_SUBJECTS {
            for gap in GAPS {
                let gap_ns = gap.as_nanos() as u64;
                configurations.push(configuration(subject, Pattern::OneWay { gap_ns }, nearest));
            }
        }
        // An awake waiter costs its notifier less than a sleeping one.
        let gap_ns = GAPS[0].as_nanos() as u64;
        let awake = configuration("futex", Pattern::OneWay { gap_ns }, nearest);
        configurations.push(Configuration { wait: WaitPolicy::Spin, ..awake });
    }
    // What spinning could reach at best, beside what it reached.
    if let Some(nearest) = across.first() {
        configurations.push(configuration(LIMIT, Pattern::Operation { batch: 1000 }, nearest));
    }
    for subject in UNPINNED_SUBJECTS {
        configurations.push(configuration(subject, Pattern::PingPong { gap_ns: 0 }, &unpinned()));
    }
    let known: Vec<Configuration> = configurations
        .into_iter()
        .filter(|configuration| {
            configuration.subject == LIMIT || mechanism::find(&configuration.subject).is_ok()
        })
        .collect();
    let pairs = u32::try_from(time.as_secs()).unwrap_or(u32::MAX).clamp(*PAIRS.start(), *PAIRS.end());
    let pair = time.saturating_sub(AROUND) / pairs;
    let bench = Some(Bench { pair_ns: Some(ns(pair)), ..asked() });
    Plan { left_out, bench, repeat_on_interference: false, ..Plan::new("survey", known, pairs, seed) }
}

fn configuration(subject: &str, pattern: Pattern, placement: &Placement) -> Configuration {
    let until = if matches!(pattern, Pattern::Operation { .. }) { WINDOW } else { MOST };
    Configuration {
        timing: if matches!(pattern, Pattern::OneWay { .. }) { Timing::Stamp } else { Timing::Around },
        placement: placement.clone(),
        ..Configuration::new(subject, pattern, Until::time(until))
    }
}

fn one_core(placement: &Placement) -> bool {
    placement.cpus.is_some_and(|[a, b]| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_cpus() -> Vec<Placement> {
        vec![
            Placement { relation: "same-core".to_owned(), cpus: Some([0, 0]) },
            Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
        ]
    }

    #[test]
    fn a_survey_takes_the_time_it_is_given_in_twenty_pairs_or_more() {
        let three = Placement { relation: "smt-sibling".to_owned(), cpus: Some([0, 4]) };
        for placements in [two_cpus(), [two_cpus(), vec![three]].concat()] {
            for seconds in [20, 60] {
                let plan = plan(&placements, Duration::from_secs(seconds), 1);
                let pair = Duration::from_nanos(plan.bench.unwrap().pair_ns.unwrap());
                let share = (pair * plan.blocks).as_secs_f64() / seconds as f64;
                assert!(plan.blocks >= 20 && (0.9..1.0).contains(&share), "{share} of {seconds} s");
            }
        }
    }

    #[test]
    fn a_machine_with_one_cpu_still_has_a_plan_and_the_harness_is_always_in_it() {
        let plan = plan(&two_cpus()[..1], Duration::from_secs(20), 1);
        assert!(plan.configurations.iter().all(|configuration| configuration.placement.cpus != Some([0, 1])));
        for subject in ["futex", "null"] {
            assert!(plan.configurations.iter().any(|configuration| configuration.subject == subject));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell uintr`.

use std::time::Duration;

use super::bounds::makes_sense;
use super::common::{RunArgs, once};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::{message, ns};
use super::offered;
use super::placements::on;
use super::sides::contexts;
use super::usage::Usage;
use doorbell_results::configuration::{Configuration, Pattern, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{duration, gap};
use doorbell_subjects::mechanism::{Contexts, Waits, find};

/// Arguments of `doorbell uintr`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell vm run --accel uintr -- uintr            in a guest whose emulated CPU has them\n  \
    doorbell vm run --accel uintr --deterministic -- uintr --count 200   in exact instructions\n  \
    doorbell uintr --count 100000 --gap 0             on a CPU that has them, with the driver loaded\n  \
    doorbell uintr eventfd uintr-by-signals-epoll     without the CPU: what libuintr makes of signals\n\n\
    The eight lines of other tools: doorbell export classic RESULT")]
pub struct Args {
    /// Means of notification (`doorbell list`)
    #[arg(value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true, default_values = VARIANTS)]
    mechanisms: Vec<String>,
    /// Time between notifications, comma separated
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME", default_value = "0,10ms,100ms,1s")]
    gap: Vec<Duration>,
    /// Bytes of message, comma separated
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = message, default_value = "1,4096")]
    size: Vec<u32>,
    /// Time-outs of waits, comma separated: usually those that kernels for user interrupts were
    /// published with, or tried with
    #[arg(long, value_delimiter = ',', value_parser = duration, value_name = "TIME", default_value = "100us,2500us,5ms,10ms")]
    wait: Vec<Duration>,
    /// Notifications of a trial [default: what 200 ms or five gaps have time for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    #[command(flatten)]
    run: RunArgs,
}

/// What is set beside each other: the harness alone, spinning, what
/// blocks, and user interrupts to a receiver that runs, sleeps in the
/// driver, and sleeps in epoll. There and back, `eventfd` is two eventfds.
const VARIANTS: [&str; 8] =
    ["null", "spin", "eventfd", "eventfd-epoll", "futex", "uintr", "uintr-wait", "uintr-epoll"];

/// How many notifications a trial is given time for, if they are apart.
const WAKES: u32 = 5;

/// The shortest trial.
const WINDOW: Duration = Duration::from_millis(200);

/// Blocks of a run that names no number: a gap of a second makes them long.
const BLOCKS: u32 = 2;

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "uintr", ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    /// Gaps x timings, sizes, time-outs, in one boot.
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let topology = &machine.topology;
        // Two CPUs: what spins shares none.
        let cpus = topology.two_cores().ok_or_else(|| {
            Usage(format!(
                "what spins, and a receiver that runs, need a CPU each, and this process may use {}",
                topology.usable
            ))
        })?;
        let mut mechanisms = self.mechanisms.clone();
        once(&mut mechanisms);
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut add = |subject: &str, pattern: Pattern, timing, wait, size| {
            let gaps = Duration::from_nanos(pattern.gap_ns()) * WAKES;
            let until = self.count.map_or_else(|| Until::time(WINDOW.max(gaps)), Until::count);
            let configuration = Configuration {
                contexts: self.contexts,
                timing,
                wait,
                placement: on(cpus, topology),
                size,
                ..Configuration::new(subject, pattern, until)
            };
            if makes_sense(&configuration, false) && !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        };
        let first = self.size[0];
        let apart = self.gap.iter().copied().find(|gap| !gap.is_zero()).unwrap_or_default();
        for subject in &mechanisms {
            for &size in &self.size {
                add(subject, Pattern::PingPong { gap_ns: 0 }, Timing::Around, WaitPolicy::Block, size);
            }
            for &gap in &self.gap {
                let pattern = Pattern::OneWay { gap_ns: ns(gap) };
                // A message's bytes cost what they cost after any gap: the others go with the shortest.
                let sizes = if gap == self.gap[0] { &*self.size } else { &[first] };
                for &size in sizes {
                    add(subject, pattern, Timing::Stamp, WaitPolicy::Block, size);
                }
                add(subject, pattern, Timing::Blocked, WaitPolicy::Block, first);
            }
            let sleeps = find(subject).is_ok_and(|entry| entry.notification().waits == Waits::Blocks);
            for &timeout in self.wait.iter().filter(|_| sleeps) {
                let wait = WaitPolicy::Timeout { timeout_ns: ns(timeout) };
                add(subject, Pattern::OneWay { gap_ns: ns(apart) }, Timing::Stamp, wait, first);
            }
        }
        Ok(Plan::new("uintr", configurations, self.run.blocks.unwrap_or(BLOCKS), self.run.seed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{two_cpus, typed};

    #[test]
    fn each_variant_is_timed_in_every_way_that_it_can_be() {
        let plan = typed::<Args>("--count 100000").plan(&two_cpus()).unwrap();
        let of = |subject: &str, holds: &dyn Fn(&Configuration) -> bool| {
            plan.configurations.iter().filter(|one| one.subject == subject && holds(one)).count()
        };
        for subject in VARIANTS {
            let sleeps = if ["null", "spin", "uintr"].contains(&subject) { 0 } else { 4 };
            let counts = [
                of(subject, &|one| one.pattern.there_and_back()),
                of(subject, &|one| {
                    one.pattern.one_way() && one.timing == Timing::Stamp && one.wait == WaitPolicy::Block
                }),
                of(subject, &|one| one.timing == Timing::Blocked),
                of(subject, &|one| one.wait != WaitPolicy::Block),
            ];
            assert_eq!(counts, [2, 5, sleeps, sleeps], "{subject}");
        }
        assert!(plan.configurations.iter().all(|one| one.until == Until::count(100_000)));
    }
}

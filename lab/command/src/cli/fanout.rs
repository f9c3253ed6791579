// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fanout`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal, named, once, under};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::load::Asked;
use super::numbers::{Numbers, message, ns, numbers};
use super::offered;
use super::out::aside;
use super::sides::{USUAL, contexts, pinning};
use super::usage::{Usage, refuse};
use doorbell_report::unit::time;
use doorbell_report::wording::counted;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::plan::Plan;
use doorbell_results::plan::semaphores::{NAME, PARTS};
use doorbell_results::quantity::{gap, wait_policy};
use doorbell_results::record::subject::Contexts;
use doorbell_subjects::fan;
use doorbell_subjects::fan::limits as fanout_limits;

/// Arguments of `doorbell fanout`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell fanout                                         20, 200 and 2000 receivers, each with a named POSIX semaphore\n  \
    doorbell fanout -n 20..200 --load full                  20 and 200, on a busy machine\n  \
    doorbell fanout sem-posix-named -n 20,200,2000 --pin unpinned,scatter\n  \
    doorbell fanout all -n 200 --interval 100ms             every mechanism\n  \
    doorbell fanout sem-posix-for-all -n 20 --interval 10ms   one semaphore for all: duplicates and misses\n  \
    doorbell fanout --grid --interval 100ms                 the whole table of mechanisms, numbers, time-outs, pinnings")]
pub struct Args {
    /// What wakes each receiver, or `all`: sem-posix-named, sem-posix, sem-sysv (a set for each),
    /// sem-sysv-many (many in a set), futex, eventfd, unix-dgram, condvar, signal-sigwaitinfo;
    /// sem-posix-for-all, one semaphore for all as a demonstration of what goes wrong; null,
    /// the harness itself, is always run [default: sem-posix-named]
    #[arg(value_name = "MECHANISM", value_parser = offered::fan_outs(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// Receivers, comma separated; A..B goes up by ten times [default: 20..2000]
    #[arg(short = 'n', long, value_delimiter = ',', value_name = "N", value_parser = receivers)]
    receivers: Vec<Numbers>,
    /// Recorded rounds of a trial; two of warm-up come before them
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,
    /// From the start of one round to the start of the next; a round
    /// begins only when all have taken the last
    #[arg(long, value_parser = gap, value_name = "TIME", default_value = "200ms")]
    interval: Duration,
    /// How receivers wait, comma separated: block, timeout=TIME, spin-then-block=TIME [default:
    /// block; with --grid block,timeout=100ms]
    #[arg(long, value_delimiter = ',', value_parser = wait_policy, value_name = "POLICY")]
    wait: Vec<WaitPolicy>,
    /// How notifier and receivers are spread over the CPUs, comma separated [default: unpinned;
    /// with --grid unpinned,scatter]
    #[arg(long, value_parser = pinning(), value_delimiter = ',', value_name = "HOW")]
    pin: Vec<Pinning>,
    /// What the receivers are, comma separated; of threads the notifier is one too
    #[arg(long, value_parser = contexts(), value_delimiter = ',', default_value = USUAL)]
    contexts: Vec<Contexts>,
    /// Bytes of message in shared memory, written before each round
    /// and read by each receiver before its stamp
    #[arg(long, default_value_t = 0, value_name = "BYTES", value_parser = message)]
    size: u32,
    /// The whole table: every mechanism x 20, 200, 2000 receivers x no time-out and one of 100 ms x
    /// unpinned and pinned x idle and full load
    #[arg(long)]
    grid: bool,
    #[command(flatten)]
    run: RunArgs,
}

fn receivers(text: &str) -> Result<Numbers, String> {
    numbers(text, 1..=20_000)
}

const HUNDRED_MS: WaitPolicy = WaitPolicy::Timeout { timeout_ns: 100_000_000 };

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "fanout", sections: &["fan-outs"], parts: PARTS.to_vec(), claims: Some(NAME) }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let plan = plan(self)?;
        if self.grid && self.run.load.is_empty() {
            let full = Asked::Busy { kind: "sqrt", workers: None, pinned: false };
            return Ok(under(&[Asked::Idle, full], plan, machine));
        }
        Ok(plan)
    }
    fn before(&self, plan: &Plan, machine: &Machine, terminal: &Terminal) -> anyhow::Result<Option<Exit>> {
        let lacking = lacking(plan, machine);
        // Before anything is started, so that the limits can be raised first.
        for lack in &lacking {
            aside!("doorbell: {lack}");
        }
        if lacking.iter().map(|lack| lack.configurations).sum::<usize>() == plan.configurations.len() {
            anyhow::bail!("nothing of this can be run here; see the limits above");
        }
        if !terminal.quiet {
            aside!("This takes about {}.", time(takes(plan).as_nanos() as f64 * 1e3));
        }
        Ok(None)
    }
}

/// Why some configurations of a plan cannot be run here.
struct Lack {
    configurations: usize,
    mechanisms: BTreeSet<String>,
    reason: String,
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.mechanisms.iter().map(String::as_str).collect();
        write!(
            f,
            "{} of {}: {}",
            counted(self.configurations as u64, "configuration"),
            names.join(", "),
            self.reason
        )
    }
}

/// What the plan lacks here, each reason once.
fn lacking(plan: &Plan, machine: &Machine) -> Vec<Lack> {
    let mut lacking: Vec<Lack> = Vec::new();
    for configuration in &plan.configurations {
        let Some(reason) = fanout_limits::lacks(configuration, machine) else { continue };
        let place = lacking.iter().position(|lack| lack.reason == reason).unwrap_or_else(|| {
            lacking.push(Lack { configurations: 0, mechanisms: BTreeSet::new(), reason });
            lacking.len() - 1
        });
        lacking[place].configurations += 1;
        lacking[place].mechanisms.insert(configuration.subject.clone());
    }
    lacking
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    fn or<T: Clone>(asked: &[T], grid: bool, of_grid: &[T], usual: T) -> Vec<T> {
        match (asked, grid) {
            ([], true) => of_grid.to_vec(),
            ([], false) => vec![usual],
            _ => asked.to_vec(),
        }
    }
    if args.wait.contains(&WaitPolicy::Spin) {
        return refuse(
            "receivers that spin keep every CPU from those that have not woken yet; use block, \
             timeout=TIME or spin-then-block=TIME",
        );
    }
    let fanout = FanOut {
        mechanisms: mechanisms(args)?,
        contexts: args.contexts.clone(),
        receivers: match Numbers::of(&args.receivers) {
            none if none.is_empty() => vec![20, 200, 2000],
            asked => asked,
        },
        waits: or(&args.wait, args.grid, &[WaitPolicy::Block, HUNDRED_MS], WaitPolicy::Block),
        pinnings: or(&args.pin, args.grid, &[Pinning::Unpinned, Pinning::Scatter], Pinning::Unpinned),
        size: args.size,
        interval: args.interval,
        rounds: args.rounds,
        blocks: args.run.blocks.unwrap_or(1),
        seed: args.run.seed(),
    };
    Ok(fanout.plan())
}

fn mechanisms(args: &Args) -> Result<Vec<String>, Usage> {
    let all = || fan::all().iter().map(|entry| entry.name);
    let mut chosen = match (&args.mechanisms[..], args.grid) {
        ([], true) => all().map(str::to_owned).collect(),
        ([], false) => vec![fan::USUAL.to_owned()],
        (asked, _) => named(asked, all(), fan::find)?,
    };
    // The harness's own cost is a row of every result.
    chosen.insert(0, "null".to_owned());
    once(&mut chosen);
    Ok(chosen)
}

/// What is asked for, by this verb or by a pick; every list is one axis of the plan.
#[derive(Debug, Clone)]
pub(super) struct FanOut {
    /// Ways of fanning out, by name.
    pub mechanisms: Vec<String>,
    pub contexts: Vec<Contexts>,
    pub receivers: Vec<u32>,
    pub waits: Vec<WaitPolicy>,
    /// How all are spread over the CPUs.
    pub pinnings: Vec<Pinning>,
    /// Bytes of message written before each round and read by each receiver.
    pub size: u32,
    /// From the start of one round to the start of the next.
    pub interval: Duration,
    /// Recorded rounds of a trial.
    pub rounds: u32,
    pub blocks: u32,
    pub seed: u64,
}

impl FanOut {
    /// The plan: every configuration that makes sense.
    pub(super) fn plan(&self) -> Plan {
        let mut configurations = Vec::new();
        for subject in &self.mechanisms {
            let Ok(entry) = fan::find(subject) else { continue };
            for &contexts in self.contexts.iter().filter(|contexts| entry.notification.joins(**contexts)) {
                for &receivers in &self.receivers {
                    for &wait in &self.waits {
                        for &pinning in &self.pinnings {
                            let pattern = Pattern::FanOut { receivers, interval_ns: ns(self.interval) };
                            let configuration = Configuration {
                                contexts,
                                timing: Timing::Stamp,
                                wait,
                                placement: Placement { relation: pinning.name().to_owned(), cpus: None },
                                size: self.size,
                                ..Configuration::new(&**subject, pattern, Until::count(self.rounds.into()))
                            };
                            if !configurations.contains(&configuration) {
                                configurations.push(configuration);
                            }
                        }
                    }
                }
            }
        }
        Plan::new("fanout", configurations, self.blocks, self.seed)
    }
}

/// How long a plan of fan-outs takes: its rounds with two of warm-up, and starting and ending the
/// receivers, of whom a machine of two CPUs manages some thousand a second.
fn takes(plan: &Plan) -> Duration {
    const ROUNDS_OF_WARMUP: u64 = 2;
    const RECEIVER: Duration = Duration::from_millis(1);
    const TRIAL: Duration = Duration::from_millis(100);
    let configuration = |configuration: &Configuration| {
        let Pattern::FanOut { receivers, interval_ns } = configuration.pattern else { return Duration::ZERO };
        let rounds = configuration.until.count.unwrap_or(1).saturating_add(ROUNDS_OF_WARMUP);
        TRIAL + RECEIVER * receivers + Duration::from_nanos(interval_ns.saturating_mul(rounds))
    };
    plan.configurations.iter().map(configuration).sum::<Duration>() * plan.blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;
    use std::collections::HashSet;

    #[test]
    fn the_plan_is_the_product_of_its_axes_and_takes_at_least_its_rounds() {
        let words = "all -n 20..2000 --wait block,timeout=100ms --pin unpinned,scatter --interval 1s";
        let plan = plan(&typed(words)).unwrap();
        assert_eq!(plan.configurations.len(), fan::all().len() * 3 * 2 * 2);
        let distinct: HashSet<&Configuration> = plan.configurations.iter().collect();
        assert_eq!(distinct.len(), plan.configurations.len());
        assert!(takes(&plan) > Duration::from_secs(22) * plan.configurations.len() as u32);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell gate`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::gpu::{Kernel, configuration, fits, kernel};
use super::numbers::ns;
use super::offered;
use super::placements::{PlacementArgs, on, unpinned};
use super::sides::{contexts, scheduler};
use super::usage::{Usage, refuse};
use super::verdict::Source;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Scheduler, Timing, Until};
use doorbell_results::machine::Machine;
use doorbell_results::machine::topology::Topology;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{percentile, refused, share, some_gap, span};
use doorbell_results::record::question::{self, Question, Which};
use doorbell_subjects::gpu::{self, Way};
use doorbell_subjects::mechanism::{self, Contexts, Waits};

/// Arguments of `doorbell gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  pass\n  3  fail\n  4  inconclusive, or this machine is unfit to measure\n\n\
    EXAMPLES\n  \
    doorbell gate --max 50us                                   99.9 % of wake-ups on every CPU, one minute\n  \
    doorbell gate --max 20us --time 10m --percentile p99.99 --scheduler fifo\n  \
    doorbell gate --max 1ms --percentile max --load full       not one wake-up longer, while the machine is busy\n  \
    doorbell gate gpu-stream-block --max 1ms --kernel 300us    the end of a GPU's kernels, wherever the scheduler puts the waiter\n  \
    doorbell gate --max 30us --from gate.json                  another limit for what was measured before\n\n\
    Notifications are due at fixed times, and each wake-up counts from when it was due: what stands still for 400 ms delays all that were\n  \
    due meanwhile. No trial is repeated because of interference: interference is what is asked about.")]
pub struct Args {
    /// The mechanism: one whose waiter sleeps, or a way to wait for a
    /// GPU (`doorbell list` shows them)
    #[arg(default_value = "futex", value_name = "MECHANISM", value_parser = offered::gates(), hide_possible_values = true)]
    mechanism: String,
    /// The longest that a wake-up may take
    #[arg(long, value_parser = span, value_name = "TIME", required_unless_present = "plan")]
    max: Option<Duration>,
    /// How many of the wake-ups must keep to it: p99, p99.9, p99.99, …, or max for every one
    #[arg(long, value_parser = which, value_name = "P", default_value = "p99.9")]
    percentile: Which,
    /// How sure the verdict is to be
    #[arg(long, value_parser = confidence, value_name = "PERCENT", default_value = "95%")]
    confidence: f64,
    /// How long all trials together measure
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "1m")]
    time: Duration,
    /// Time between notifications
    #[arg(long, value_parser = some_gap, value_name = "TIME", default_value = "1ms")]
    gap: Duration,
    /// Send the next notification only when the last was taken: a standstill then delays one
    /// wake-up, and not all that were due in it
    #[arg(long)]
    closed_loop: bool,
    /// How long the GPU's kernels work, where it is a way to wait for a GPU [default: 100us]
    #[arg(long, value_parser = kernel, value_name = "TIME")]
    kernel: Option<Kernel>,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    /// How the sides are scheduled; fifo needs the right to real-time priority
    #[arg(long, value_parser = scheduler(), default_value = "other")]
    scheduler: Scheduler,
    #[command(flatten)]
    source: Source,
    /// Where the sides run [default: each CPU is waited on once, notified from the one before it]
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

fn which(text: &str) -> Result<Which, String> {
    if text == "max" { Ok(Which::Longest) } else { percentile(text).map(Which::Quantile) }
}

fn confidence(text: &str) -> Result<f64, String> {
    match share(text) {
        Ok(confidence) if (0.5..1.0).contains(&confidence) => Ok(confidence),
        _ => Err(refused(format_args!("'{text}' is not from 50% to below 100%"), &["95%", "99.9%"])),
    }
}

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "gate", ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        self.source.answer(&self, |_| question(&self), &[], terminal)
    }
}

fn question(args: &Args) -> Result<Question, Usage> {
    let max = args.max.ok_or_else(|| Usage("a gate needs its limit: --max 50us".to_owned()))?;
    let (limit_ns, which, confidence) = (ns(max), args.percentile, args.confidence);
    Ok(Question::Gate(question::Gate { limit_ns, which, confidence }))
}

/// Kernels of the GPU unless told otherwise.
const KERNEL: Kernel = Kernel::always(Duration::from_micros(100));

/// The end of kernels, waited for wherever the scheduler puts the
/// waiter, or on the second CPU of each placement.
fn of_gpu(args: &Args, way: &'static Way, machine: &Machine) -> Result<(Pattern, Vec<Placement>), Usage> {
    let own = |what: &str| refuse(format!("{} waits for a GPU: {what}", way.name));
    if args.contexts != Contexts::default() || args.closed_loop {
        return own("there are no two sides for --contexts and --closed-loop; each kernel follows the last");
    }
    if way.wakes_gpu() && args.kernel.is_some() {
        return own("it tells when a kernel begins, so that --kernel is no matter");
    }
    let placements = match args.placements.is_given() {
        false => vec![unpinned()],
        true => args.placements.resolve(&machine.topology)?,
    };
    let waiters = placements.into_iter().map(|placement| match placement.cpus {
        Some([_, cpu]) => Placement { relation: "same-core".to_owned(), cpus: Some([cpu; 2]) },
        None => placement,
    });
    Ok((configuration(way, args.kernel.unwrap_or(KERNEL), 1, args.gap).pattern, waiters.collect()))
}

/// Wake-ups of one side by the other, on every CPU.
fn of_sides(args: &Args, machine: &Machine) -> anyhow::Result<(Pattern, Vec<Placement>)> {
    let name = &args.mechanism;
    let own = mechanism::find(name).map_err(Usage::of)?.notification();
    if args.kernel.is_some() {
        return refuse(format!("{name} waits for no GPU: --kernel is no matter"));
    }
    if own.waits == Waits::Nothing {
        return refuse(format!("{name}: nobody waits in it"));
    }
    if !own.joins(args.contexts) {
        return refuse(format!("{name} does not join such sides; see `doorbell list`, and --contexts"));
    }
    let placements = match args.placements.is_given() {
        true => args.placements.resolve(&machine.topology)?,
        false => ring(&machine.topology),
    };
    let gap_ns = ns(args.gap);
    let pattern = match args.closed_loop {
        true => Pattern::OneWay { gap_ns },
        false => Pattern::OpenLoop { gap_ns },
    };
    Ok((pattern, placements))
}

/// Placements in which every CPU is waited on once: each is woken from the one before it.
pub fn ring(topology: &Topology) -> Vec<Placement> {
    let cpus: Vec<u32> = topology.usable.iter().collect();
    let pair = |index: usize| [cpus[(index + cpus.len() - 1) % cpus.len()], cpus[index]];
    (0..cpus.len()).map(|index| on(pair(index), topology)).collect()
}

/// How long a trial is, if that leaves [`BLOCKS`]: long against what it costs to set one up.
const WINDOW: Duration = Duration::from_secs(5);

/// Fewest and most blocks unless told otherwise: how unlike they are
/// tells how much the wakes of one are alike.
const BLOCKS: std::ops::RangeInclusive<u128> = 10..=200;

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let way = gpu::find(&args.mechanism);
    let (pattern, placements) = match &way {
        Ok(way) => of_gpu(args, way, machine)?,
        Err(unknown) if args.mechanism.starts_with("gpu-") => return Err(Usage::of(unknown).into()),
        Err(_) => of_sides(args, machine)?,
    };
    let number = u32::try_from(placements.len()).unwrap_or(u32::MAX);
    // Ten blocks of ten wakes: fewer say nothing at all.
    let least = args.gap * 100 * number;
    if args.time < least {
        return refuse(format!(
            "--time {:?} is too short for {number} placements with a gap of {:?}: it takes at least \
             {least:?}",
            args.time, args.gap
        ));
    }
    let each = args.time / number.max(1);
    let usual = (each.as_nanos() / WINDOW.as_nanos()).clamp(*BLOCKS.start(), *BLOCKS.end()) as u32;
    let blocks = args.run.blocks.unwrap_or(usual);
    let configuration = |placement| Configuration {
        contexts: args.contexts,
        timing: Timing::Stamp,
        placement,
        scheduler: args.scheduler,
        ..Configuration::new(&*args.mechanism, pattern, Until::time(each / blocks.max(1)))
    };
    let configurations = placements.into_iter().map(configuration).collect();
    let plan = Plan {
        question: Some(question(args)?),
        // Where the longest is asked for, a trial left out because
        // of interference would be the very answer left out.
        repeat_on_interference: false,
        ..Plan::new("gate", configurations, blocks, args.run.seed())
    };
    if let Ok(way) = way {
        fits(way, &plan)?;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;
    use doorbell_results::record::sample;

    #[test]
    fn all_trials_together_measure_as_long_as_was_asked_and_none_is_done_over() {
        for (seconds, cpus) in [(600, 1), (600, 64), (3, 2)] {
            let mut machine = sample::machine();
            machine.topology.usable = (0..cpus).collect();
            let args: Args = typed(&format!("--max 1ms --time {seconds}s"));
            let plan = plan(&args, &machine).unwrap();
            assert_eq!(plan.configurations.len(), cpus as usize);
            let windows =
                plan.configurations.iter().map(|configuration| configuration.until.time_ns.unwrap());
            let whole = Duration::from_nanos(windows.sum()) * plan.blocks;
            let time = Duration::from_secs(seconds);
            assert!(whole <= time && whole > time * 99 / 100, "{whole:?} of {time:?}");
            assert!((10..=200).contains(&plan.blocks), "{}", plan.blocks);
            assert_eq!(plan.repeats(), 0);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell gate`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::gpu::{Kernel, configuration, fits, kernel};
use super::offered;
use super::placements::{PlacementArgs, unpinned};
use super::sides::{contexts, scheduler};
use super::usage::Usage;
use super::verdict::{Figures, Source};
use crate::experiment::gate::{Gate, ring};
use doorbell_results::configuration::{Pattern, Placement, Scheduler};
use doorbell_results::machine::Machine;
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
    fn name(&self) -> &'static str {
        "gate"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        let args = self;
        let mut result = match args.source.figures(&args, terminal)? {
            Figures::Of(result) => result,
            Figures::None(exit) => return Ok(exit),
        };
        let question = args.source.question(&result, || question(&args))?;
        args.source.deliver(&args.run, terminal, &mut result, &question, &[])
    }
}

fn question(args: &Args) -> Result<Question, Usage> {
    let max = args.max.ok_or_else(|| Usage("a gate needs its limit: --max 50us".to_owned()))?;
    Ok(Question::Gate(question::Gate {
        limit_ns: u64::try_from(max.as_nanos()).unwrap_or(u64::MAX),
        which: args.percentile,
        confidence: args.confidence,
    }))
}

/// Kernels of the GPU unless told otherwise.
const KERNEL: Kernel = Kernel::always(Duration::from_micros(100));

/// The end of kernels, waited for wherever the scheduler puts the
/// waiter, or on the second CPU of each placement.
fn of_gpu(args: &Args, way: &'static Way, machine: &Machine) -> Result<(Pattern, Vec<Placement>), Usage> {
    let own = |what: &str| Err(Usage(format!("{} waits for a GPU: {what}", way.name)));
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
    let entry = mechanism::find(&args.mechanism).map_err(|unknown| Usage(unknown.to_string()))?;
    if args.kernel.is_some() {
        return Err(Usage(format!("{} waits for no GPU: --kernel is no matter", args.mechanism)).into());
    }
    if entry.notification().waits == Waits::Nothing {
        return Err(Usage(format!("{}: nobody waits in it", args.mechanism)).into());
    }
    if !entry.notification().joins(args.contexts) {
        let message =
            format!("{} does not join such sides; see `doorbell list`, and --contexts", args.mechanism);
        return Err(Usage(message).into());
    }
    let placements = if args.placements.is_given() {
        args.placements.resolve(&machine.topology)?
    } else {
        ring(&machine.topology)
    };
    let gap_ns = u64::try_from(args.gap.as_nanos()).unwrap_or(u64::MAX);
    let pattern = match args.closed_loop {
        true => Pattern::OneWay { gap_ns },
        false => Pattern::OpenLoop { gap_ns },
    };
    Ok((pattern, placements))
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let (pattern, placements) = match gpu::find(&args.mechanism) {
        Ok(way) => of_gpu(args, way, machine)?,
        Err(unknown) if args.mechanism.starts_with("gpu-") => return Err(Usage(unknown.to_string()).into()),
        Err(_) => of_sides(args, machine)?,
    };
    let configurations = u32::try_from(placements.len()).unwrap_or(u32::MAX);
    // Ten blocks of ten wakes: fewer say nothing at all.
    let least = args.gap * 100 * configurations;
    if args.time < least {
        let message = format!(
            "--time {:?} is too short for {configurations} placements with a gap of {:?}: it takes \
             at least {least:?}",
            args.time, args.gap
        );
        return Err(Usage(message).into());
    }
    let gate = Gate {
        subject: args.mechanism.clone(),
        contexts: args.contexts,
        placements,
        pattern,
        time: args.time,
        scheduler: args.scheduler,
        blocks: args.run.blocks,
        seed: args.run.seed(),
    };
    let plan = Plan { question: Some(question(args)?), ..gate.plan() };
    if let Ok(way) = gpu::find(&args.mechanism) {
        fits(way, &plan)?;
    }
    Ok(plan)
}

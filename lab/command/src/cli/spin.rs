// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell spin`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::placements::PlacementArgs;
use super::sides::contexts;
use super::usage::Usage;
use super::verdict::{Figures, Source};
use crate::experiment::spin::Spin;
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gaps, refused, span};
use doorbell_results::record::question::{self, Question};
use doorbell_subjects::mechanism::{self, Contexts, Waits};

/// Arguments of `doorbell spin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  there is a verdict for every gap\n  4  some gap's is inconclusive, or this machine is unfit to measure\n\n\
    EXAMPLES\n  \
    doorbell spin                              futex, gaps of 5us to 1ms\n  \
    doorbell spin eventfd --gap 5us..1ms       1, 2 and 5 of every decade between\n  \
    doorbell spin --worth 10                   a microsecond of latency is worth ten of CPU time\n  \
    doorbell spin --from spin.json --worth 0.1   another price for what was measured before\n\n\
    `doorbell tune` measures what one sleep costs and leaves it where the library's adaptive waiter reads it.")]
pub struct Args {
    /// The mechanism: one that sleeps (`doorbell list` shows them)
    #[arg(default_value = "futex", value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanism: String,
    /// Times between notifications, comma separated; A..B is 1, 2 and 5 of every decade between
    #[arg(long, value_delimiter = ',', value_parser = gaps, value_name = "TIME", default_value = "5us,10us,20us,50us,100us,1ms")]
    gap: Vec<Vec<Duration>>,
    /// How long to spin before sleeping, comma separated [default: what makes sense at each gap]
    #[arg(long, value_delimiter = ',', value_parser = span, value_name = "TIME")]
    spin: Vec<Duration>,
    /// How many microseconds of CPU time a microsecond of latency is worth
    #[arg(long, value_parser = worth, value_name = "RATIO", default_value = "1")]
    worth: f64,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    /// Length of a trial [default: 50 ms, or 20 gaps if those take longer]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

fn worth(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(worth) if (0.0..=1e6).contains(&worth) => Ok(worth),
        _ => Err(refused(format_args!("'{text}' is no ratio from 0 to 1000000"), &["1", "0.1"])),
    }
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "spin"
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
        let question = args.source.question(&result, || Ok(question(&args)))?;
        args.source.deliver(&args.run, terminal, &mut result, &question, &[])
    }
}

fn question(args: &Args) -> Question {
    Question::Spin(question::Spin { worth: args.worth })
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let entry = mechanism::find(&args.mechanism).map_err(|unknown| Usage(unknown.to_string()))?;
    let contexts = args.contexts;
    if entry.notification().waits != Waits::Blocks {
        let message =
            format!("{}: its waiter does not sleep, so there is nothing to spin before", args.mechanism);
        return Err(Usage(message).into());
    }
    if !entry.notification().joins(contexts) {
        let message =
            format!("{} does not join such sides; see `doorbell list`, and --contexts", args.mechanism);
        return Err(Usage(message).into());
    }
    // What no machine can measure is told before what this one has not.
    let mut gaps: Vec<Duration> = args.gap.iter().flatten().copied().collect();
    gaps.sort_unstable();
    gaps.dedup();
    if gaps.first().is_none_or(Duration::is_zero) {
        return Err(Usage(
            "a gap of 0 leaves nothing to wait for; write for example --gap 5us..1ms".to_owned(),
        )
        .into());
    }
    let placements = args.placements.resolve_one(&machine.topology)?;
    let [placement] = &placements[..] else {
        return Err(Usage("one verdict is for one placement: name one with --placement".to_owned()).into());
    };
    if placement.cpus.is_some_and(|[a, b]| a == b) || machine.topology.usable.len() == 1 {
        let message = "both sides on one core: a waiter that spins there holds up its notifier, so \
            never spin; name a placement on two with --placement";
        return Err(Usage(message.to_owned()).into());
    }
    let spin = Spin {
        subject: args.mechanism.clone(),
        contexts,
        placement: placement.clone(),
        gaps,
        spins: args.spin.clone(),
        time: args.time,
        blocks: args.run.blocks,
        seed: args.run.seed(),
    };
    Ok(Plan { question: Some(question(args)), ..spin.plan() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::spin::GAPS;

    #[test]
    fn the_usual_gaps_are_those_of_the_experiment() {
        let usual: Vec<Duration> =
            "5us,10us,20us,50us,100us,1ms".split(',').flat_map(|text| gaps(text).unwrap()).collect();
        assert_eq!(usual, GAPS);
    }
}

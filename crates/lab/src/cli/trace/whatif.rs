// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace whatif`.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::common::Exit;
use crate::cli::kept;
use crate::cli::out;
use crate::cli::usage::Usage;
use doorbell_report::style::Style;
use doorbell_report::what_if;
use doorbell_results::quantity::{refused, span};
use doorbell_results::record::read;
use doorbell_verdict::what_if::{Costs, costs, what_if};

/// Arguments of `doorbell trace whatif`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell tune -o costs.json && doorbell trace whatif t.json --edge A spin=18us --costs costs.json\n  \
    doorbell trace whatif t.json --edge B spin=50us --hand-over 240ns --sleep-cost 5us\n\n\
    The recorded sleeps are gone through again: each that is shorter than the spin becomes a hand-over at the price of\n  \
    spinning, the others pay for the spin and the sleep. Where the record cannot know, no figure is given; exit status 4.")]
pub struct Args {
    /// The result of `doorbell trace`: a file, a baseline, or - for standard input
    #[arg(value_name = "RESULT")]
    result: PathBuf,
    /// The edge, by its letter
    #[arg(long, value_name = "LETTER")]
    edge: String,
    /// What would be changed: the waiter spins for so long before it sleeps
    #[arg(value_name = "spin=TIME", value_parser = spin)]
    change: Duration,
    /// What spinning and sleeping cost here: a result of `doorbell tune` or `doorbell survey` of the same machine
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["hand_over", "sleep_cost"])]
    costs: Option<PathBuf>,
    /// Or told: from the waker's store to a spinning waiter's next step
    #[arg(long, value_name = "TIME", value_parser = span, requires = "sleep_cost")]
    hand_over: Option<Duration>,
    /// And the CPU time of waker and waiter for one sleep and its wake-up
    #[arg(long, value_name = "TIME", value_parser = span, requires = "hand_over")]
    sleep_cost: Option<Duration>,
}

/// `spin=18us`.
fn spin(text: &str) -> Result<Duration, String> {
    match text.split_once('=') {
        Some(("spin", time)) => span(time),
        _ => Err(refused(format_args!("'{text}' is no change that can be answered for"), &["spin=18us"])),
    }
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let costs = match (&args.costs, args.hand_over.zip(args.sleep_cost)) {
        (Some(named), _) => Some(costs(&read::read(&kept::find(named)?)?)),
        (None, Some((hand_over, sleep))) => {
            let ns = |time: Duration| time.as_nanos() as f64;
            Some(Ok(Costs { hand_over_ns: ns(hand_over), sleep_ns: ns(sleep) }))
        }
        (None, None) => None,
    };
    let Some(costs) = costs else {
        let message = "say what spinning and sleeping cost on that machine: `--costs FILE` with a result of `doorbell tune`, or \
                       `--hand-over` with `--sleep-cost`";
        return Err(Usage(message.to_owned()).into());
    };
    let result = read::read(&kept::find(&args.result)?)?;
    let found = costs.and_then(|costs| what_if(&result, &args.edge, args.change, costs));
    out::say(&what_if::told(&args.edge, args.change, &found, &Style::of_stdout()));
    Ok(if found.is_ok() { Exit::Done } else { Exit::Unfit })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace show`.

use std::path::PathBuf;

use crate::cli::common::Exit;
use crate::cli::kept;
use crate::cli::out::{self, aside};
use doorbell_report::edge;
use doorbell_report::style::Style;
use doorbell_results::record::read;

/// Arguments of `doorbell trace show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell trace show t.json --edge A      the five slowest wake-ups of the worst edge\n\n\
    A cause is named where what was recorded of that very wake-up shows it and it covers half of it or more; else it is unknown. Exit status 4\n  \
    where the result has no such wake-ups.")]
pub struct Args {
    /// The result of `doorbell trace`: a file, a baseline, or - for standard input
    #[arg(value_name = "RESULT")]
    result: PathBuf,
    /// The edge, by its letter
    #[arg(long, value_name = "LETTER")]
    edge: String,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let result = read::read(&kept::find(&args.result)?)?;
    match edge::text(&result, &args.edge, &Style::of_stdout()) {
        Ok(text) => {
            out::say(&text);
            Ok(Exit::Done)
        }
        Err(why) => {
            aside!("doorbell: {why}");
            Ok(Exit::Unfit)
        }
    }
}

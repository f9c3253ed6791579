// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace export`.

use std::path::{Path, PathBuf};

use crate::cli::common::Exit;
use crate::cli::kept;
use crate::cli::out;
use crate::cli::usage::refuse;
use doorbell_report::wake_export;
use doorbell_results::record::read;
use doorbell_verdict::what_if::program;

/// Arguments of `doorbell trace export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell trace export folded t.json | flamegraph.pl --countname us > wakes.svg\n  \
    doorbell trace export chrome t.json -o t.trace.json     for ui.perfetto.dev and chrome://tracing")]
pub struct Args {
    /// The format
    format: Format,
    /// The result of `doorbell trace`: a file, a baseline, or - for standard input
    #[arg(value_name = "RESULT")]
    result: PathBuf,
    /// Where the text goes [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// Folded stacks, program;waiter;mechanism;waker, with the microseconds that the wake-ups took
    /// (of `--engine own`: that the waiter slept)
    Folded,
    /// Chrome's trace format, which Perfetto reads: what the threads
    /// of the worst edges did, wake-up by wake-up
    Chrome,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let result = read::read(&kept::find(&args.result)?)?;
    let Some(program) = program(&result) else {
        let message = "it is the result of no recorded program: `doorbell trace` makes one, and \
            `doorbell export` is for the others";
        return refuse(message);
    };
    if let (Format::Chrome, Some(_)) = (args.format, program.lasted_ns) {
        let message = "it was recorded in slices, which is no timeline; `folded` can be had, or a \
            recording without --duty";
        return refuse(message);
    }
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    out::put(output, |out| match args.format {
        Format::Folded => wake_export::folded(program, out),
        Format::Chrome => wake_export::chrome(program, out),
    })?;
    Ok(Exit::Done)
}

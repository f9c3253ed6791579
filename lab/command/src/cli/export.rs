// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell export`.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;

use super::common::{Exit, Terminal};
use super::out;
use doorbell_report::export;
use doorbell_results::record::read;

/// Arguments of `doorbell export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell export csv result.json > result.csv      one number a line, for DuckDB, pandas, any data frame\n  \
    doorbell export hgrm result.json -o result.hgrm   for the HdrHistogram plotter\n  \
    doorbell ping futex -o - | doorbell export classic -")]
pub struct Args {
    /// The format
    #[arg(value_parser = formats())]
    format: String,
    /// The result file (`-` for standard input)
    file: PathBuf,
    /// Where the text goes [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn formats() -> PossibleValuesParser {
    let formats = export::ALL.into_iter();
    PossibleValuesParser::new(formats.map(|format| PossibleValue::new(format.name).help(format.about)))
}

/// Runs `doorbell export`.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let result = read::read(&args.file)?;
    let format = export::find(&args.format)
        .ok_or_else(|| super::usage::Usage(format!("no format is called '{}'", args.format)))?;
    out::put(args.output.as_deref().unwrap_or(Path::new("-")), |out| (format.export)(&result, out))?;
    Ok(Exit::Done)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell report`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::common::{Exit, Terminal};
use super::out::{self, aside};
use doorbell_report::html::{Source, report};
use doorbell_report::judgement::answered;
use doorbell_report::picture::{self, Name};
use doorbell_results::record::ResultFile;
use doorbell_results::record::read::read;

/// Arguments of `doorbell report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell report result.json -o report.html\n  \
    doorbell report before.json after.json -o report.html      two runs over each other\n  \
    doorbell report *.json -o report.html                      a chapter for each experiment\n  \
    doorbell ping futex --output - | doorbell report - -o report.html\n  \
    doorbell report result.json --picture ranges -o ranges.svg  one chart alone, for a page of your own")]
pub struct Args {
    /// Result files (`-` for standard input)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the page goes (`-` for standard output)
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// One chart as an SVG file instead of the page
    #[arg(long, value_enum, value_name = "CHART")]
    picture: Option<Name>,
}

pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut sources = args.files.iter().map(|file| source(file)).collect::<anyhow::Result<Vec<Source>>>()?;
    let results: Vec<&ResultFile> = sources.iter().map(|source| &source.result).collect();
    let verdicts: Vec<_> = results.iter().map(|result| answered(result, &results)).collect();
    for (source, verdict) in sources.iter_mut().zip(verdicts) {
        source.verdict = verdict;
    }
    let text = match args.picture {
        None => report(&sources)?,
        Some(name) => picture::draw(name, &sources)?,
    };
    out::put(&args.output, |out| out.write_all(text.as_bytes()))?;
    if args.output.as_os_str() == "-" {
        return Ok(Exit::Done);
    }
    if !terminal.quiet {
        let size = text.len().div_ceil(1000);
        aside!("Wrote {} ({size} kB).", args.output.display());
    }
    Ok(Exit::Done)
}

/// Reads one result; its name is its own or that of its file.
pub(super) fn source(file: &Path) -> anyhow::Result<Source> {
    let result = read(file)?;
    let stem = || file.file_stem().unwrap_or(OsStr::new("result")).to_string_lossy().into_owned();
    Ok(Source { name: result.name.clone().unwrap_or_else(stem), verdict: Vec::new(), result })
}

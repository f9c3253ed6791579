// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell report`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::common::{Exit, Terminal};
use doorbell_report::asked::answered;
use doorbell_report::html::{Source, report};
use doorbell_report::picture::{self, Name};
use doorbell_results::record::ResultFile;
use doorbell_results::record::read::{read, read_from};

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
    if args.output.as_os_str() == "-" {
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    save(&args.output, &text)
        .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", args.output.display()))?;
    if !terminal.quiet {
        let size = text.len().div_ceil(1000);
        // The page is written: a standard error that is closed changes nothing about it.
        let _ = writeln!(std::io::stderr(), "Wrote {} ({size} kB).", args.output.display());
    }
    Ok(Exit::Done)
}

/// Reads one result; its name is its own or that of its file.
pub(super) fn source(file: &Path) -> anyhow::Result<Source> {
    let result = if file.as_os_str() == "-" {
        read_from(std::io::stdin().lock(), "standard input")?
    } else {
        read(file)?
    };
    let stem = || file.file_stem().unwrap_or(OsStr::new("result")).to_string_lossy().into_owned();
    Ok(Source { name: result.name.clone().unwrap_or_else(stem), verdict: Vec::new(), result })
}

/// Writes beside the target and renames: a full disk leaves the report that was there.
pub(super) fn save(target: &Path, text: &str) -> std::io::Result<()> {
    if target.exists() && !target.is_file() {
        // A terminal, a pipe: nothing to rename.
        return File::options().write(true).open(target)?.write_all(text.as_bytes());
    }
    let mut beside = target.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&beside, target)).inspect_err(|_| {
        // What stopped the writing is the error to tell.
        let _ = std::fs::remove_file(&beside);
    })
}

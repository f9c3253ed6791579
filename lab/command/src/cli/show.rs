// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell show`.

use std::path::PathBuf;

use super::common::{Exit, Terminal, unmeasured_lines};
use super::kept;
use super::out;
use super::verdict::Form;
use doorbell_report::judgement;
use doorbell_report::result_text::{Detail, shown};
use doorbell_report::style::Style;
use doorbell_results::record::read;
use doorbell_verdict::unmeasured::unmeasured;

/// Arguments of `doorbell show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell show                   what the last run said\n  \
    doorbell show --details         its tables, warnings and primitive costs as well\n  \
    doorbell show before.json       any result\n  \
    doorbell show main              the baseline that --save-baseline main kept\n  \
    doorbell show --format junit    its verdict for other programs")]
pub struct Args {
    /// The result: a file, a baseline, or - for standard input [default: that of the last run]
    #[arg(value_name = "RESULT")]
    result: Option<PathBuf>,
    /// What a check was held against, where that is at hand
    #[arg(long, value_name = "RESULT")]
    against: Option<PathBuf>,
    /// Every table, warning and primitive cost as well
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    form: Form,
}

/// Runs `doorbell show`.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let path = match &args.result {
        Some(named) => kept::find(named)?,
        None => kept::last()?,
    };
    let result = read::read(&path)?;
    let against =
        args.against.as_deref().map(|named| read::read(&kept::find(named)?).map_err(anyhow::Error::from));
    let against = against.transpose()?;
    let others: Vec<_> = against.iter().collect();
    let text = match args.form.writer() {
        None => {
            let detail = if args.details { Detail::Full } else { Detail::Brief };
            let told = shown(&result, &others, detail, &Style::of_stdout());
            let lines = unmeasured(&result).map(|lacking| unmeasured_lines(&lacking, "")).unwrap_or_default();
            lines.into_iter().fold(told, |told, line| told + &Style::of_stdout().wrap(&line, 0))
        }
        Some(write) => {
            let name = format!("doorbell {}", result.plan.experiment);
            write(&name, &judgement::verdict(&result, &others))
        }
    };
    out::say(&text);
    Ok(Exit::Done)
}

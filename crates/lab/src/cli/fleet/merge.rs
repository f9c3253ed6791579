// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fleet merge`.

use std::cell::RefCell;
use std::path::PathBuf;

use super::super::common::Exit;
use super::super::out;
use super::results::{each, files, latest_begin};
use doorbell_files::replace;
use doorbell_report::export::parquet::{Bins, Figures, Sheet};
use doorbell_report::fleet::LeftOut;
use doorbell_report::style::Style;
use doorbell_report::wording::counted;
use doorbell_results::record::write::WriteError;
use doorbell_verdict::fleet::Runs;

/// Arguments of `doorbell fleet merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  every file is in it\n  1  a file could not be read; the others are in it\n\n\
    The columns are those of `doorbell export parquet` and `parquet-bins`; book/queries.md has questions for them.")]
pub struct Args {
    /// Results, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where the pair goes: NAME.figures.parquet and NAME.bins.parquet
    #[arg(long, short, value_name = "NAME")]
    output: PathBuf,
}

/// One pass over the results, of which one is in memory at a time.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let files = files(&args.paths)?;
    let target = |kind: &str| {
        let mut path = args.output.clone().into_os_string();
        path.push(kind);
        PathBuf::from(path)
    };
    let [figures, bins] = [target(".figures.parquet"), target(".bins.parquet")];
    let left_out: RefCell<Vec<LeftOut>> = RefCell::default();
    replace(&figures, |out| {
        let figures = RefCell::new(Sheet::new(Figures, out)?);
        replace(&bins, |out| {
            let (mut runs, mut bins) = (Runs::begun_by(latest_begin()), Sheet::new(Bins, out)?);
            let left = each(&files, |_, result| {
                if let Err(refused) = runs.node(result) {
                    return Ok(Err(refused.to_string()));
                }
                figures.borrow_mut().add(result)?;
                bins.add(result)?;
                Ok(Ok(()))
            })?;
            left_out.replace(left);
            bins.close()
        })?;
        figures.into_inner().close()
    })
    .map_err(|cause| WriteError { target: figures.clone(), cause, rescued: None })?;
    let left_out = left_out.into_inner();
    let (style, [figures, bins]) =
        (Style::of_stdout(), [figures, bins].map(|path| path.display().to_string()));
    let taken = files.len() - left_out.len();
    let mut text = style
        .wrap(&format!("{taken} of {} in {figures} and {bins}", counted(files.len() as u64, "result")), 0);
    for LeftOut { file, reason } in &left_out {
        text.push_str(&style.wrap(&format!("Left out: {file}: {reason}"), 0));
    }
    out::say(&text);
    Ok(if left_out.is_empty() { Exit::Done } else { Exit::Failed })
}

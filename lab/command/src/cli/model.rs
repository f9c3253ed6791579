// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell model`.

use std::io::Write;
use std::path::PathBuf;

use doorbell_uintr::report::{Mechanism, correct, hazard, list};
use doorbell_uintr::view::{Glyphs, svg};

use super::common::{Exit, Terminal};
use super::out::{self, Out};
use super::usage::Usage;

/// Arguments of `doorbell model`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell model uintr                          every interleaving of the driver's protocol: is any wake-up lost?\n  \
    doorbell model uintr --hazard list            the known mistakes, and the field notes they explain\n  \
    doorbell model uintr --hazard H4              the shortest run that loses the wake-up, as a chart\n  \
    doorbell model bell --hazard B1 --svg b1.svg  the same as a picture")]
pub struct Args {
    /// Whose protocol
    #[arg(value_parser = ["uintr", "polled", "futex", "eventfd", "bell", "mach-semaphore"])]
    mechanism: String,
    /// Put one mistake in and show what it loses; `list` tells which there are
    #[arg(long, value_name = "NAME")]
    hazard: Option<String>,
    /// Write the chart as a picture too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Search the largest configuration too; takes minutes
    #[arg(long, conflicts_with = "hazard")]
    full: bool,
    /// Draw with seven-bit characters
    #[arg(long)]
    ascii: bool,
}

/// Searches a model and prints what was found; fails if it is not what the protocol promises.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let mechanism = Mechanism::ALL
        .into_iter()
        .find(|mechanism| mechanism.name() == args.mechanism)
        .ok_or_else(|| Usage(format!("there is no model of '{}'", args.mechanism)))?;
    let glyphs = if args.ascii { Glyphs::Ascii } else { Glyphs::Unicode };
    let mut out = Out::new();
    let answer = match args.hazard.as_deref() {
        Some("list") => {
            out.write_all(list(mechanism).as_bytes())?;
            return Ok(Exit::Done);
        }
        Some(name) => hazard(mechanism, name, glyphs).map_err(Usage::of)?,
        None => correct(mechanism, args.full),
    };
    out.write_all(answer.text.as_bytes())?;
    match (&args.svg, &answer.chart) {
        (Some(file), Some(chart)) => {
            out::put(file, |file| file.write_all(svg(chart).as_bytes()))?;
        }
        (Some(_), None) => writeln!(out, "There is no interleaving to draw; a picture needs --hazard NAME.")?,
        (None, _) => {}
    }
    Ok(if answer.expected { Exit::Done } else { Exit::Failed })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell man`: the manual page, from the same definition as `--help`.

use super::common::{Exit, Terminal};
use super::out;

/// Arguments of `doorbell man`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The verb whose page to print [default: the page of the whole command]
    verb: Option<String>,
}

/// Prints the page in roff; `doorbell man | man -l -` shows it.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let mut command = super::command();
    command.build();
    let page = match &args.verb {
        None => command,
        Some(verb) => command.find_subcommand(verb).cloned().ok_or_else(|| {
            super::usage::Usage(format!("no verb is called '{verb}'; `doorbell help` lists them"))
        })?,
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    out::say_bytes(&roff);
    Ok(Exit::Done)
}

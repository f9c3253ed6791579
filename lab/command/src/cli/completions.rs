// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell completions`: from the same definition as `--help`.

use super::common::{Exit, Terminal};
use super::out;

/// Arguments of `doorbell completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "doorbell", &mut script);
    out::say_bytes(&script);
    Ok(Exit::Done)
}

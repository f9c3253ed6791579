// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell schema`.

use super::common::{Exit, Terminal};
use super::out;

/// Prints the JSON Schema of result files.
/// Arguments of `doorbell schema`: none.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, _: &Terminal) -> anyhow::Result<Exit> {
    out::say(doorbell_results::record::schema::SCHEMA);
    Ok(Exit::Done)
}

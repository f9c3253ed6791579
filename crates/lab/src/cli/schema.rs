// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell schema`.

use std::io::Write;

use super::common::{Exit, Terminal};

/// Prints the JSON Schema of result files.
/// Arguments of `doorbell schema`: none.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, _: &Terminal) -> anyhow::Result<Exit> {
    std::io::stdout().write_all(doorbell_results::record::schema::SCHEMA.as_bytes())?;
    Ok(Exit::Done)
}

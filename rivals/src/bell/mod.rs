// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bell against the same thing written by hand.

pub mod bars;
pub mod curves;
mod variant;

use crate::arguments::Cpus;
use crate::raw::Raw;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    #[command(flatten)]
    cpus: Cpus,
}

type Comparison = fn(&crate::arguments::Common, (usize, usize), &mut Raw) -> anyhow::Result<usize>;

/// Runs one of the two. False if a bar was missed.
pub fn run(arguments: &Arguments, comparison: Comparison) -> anyhow::Result<bool> {
    let cpus = arguments.cpus.pair();
    println!("CPUs {} and {}.\n", cpus.0, cpus.1);
    let mut raw = Raw::new(arguments.common.raw.as_deref())?;
    Ok(comparison(&arguments.common, cpus, &mut raw)? == 0)
}

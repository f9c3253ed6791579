// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell survey`, also what a bare `doorbell` runs.

use super::common::{Exit, RunArgs, Terminal, machine_here};
use super::placements::present;
use crate::experiment::survey;

/// Arguments of `doorbell survey`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
}

/// Runs `doorbell survey`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    let machine = machine_here();
    let plan = args.run.planned("survey", &machine, || {
        let mut plan = survey::plan(&present(&machine.topology), args.run.seed());
        plan.blocks = args.run.blocks.unwrap_or(plan.blocks);
        Ok(plan)
    })?;
    args.run.run(plan, machine, terminal)
}

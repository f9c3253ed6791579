// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell survey`, also what a bare `doorbell` runs.

use std::time::Duration;

use super::common::RunArgs;
use super::experiment::Experiment;
pub use super::experiment::run;
use super::placements::present;
use crate::experiment::survey::{self, LIMIT};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::span;
use doorbell_verdict::answer::{BARE_SPINNING, LIMIT_OF_SPINNING};

/// Arguments of `doorbell survey`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long it takes: figures and verdicts are the sharper the longer it is [default: 20s]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    run: RunArgs,
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "survey"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let mut plan =
            survey::plan(&present(&machine.topology), self.time.unwrap_or(survey::TIME), self.run.seed());
        plan.blocks = self.run.blocks.unwrap_or(plan.blocks);
        Ok(plan)
    }
    fn sections(&self) -> &'static [&'static str] {
        &["survey"]
    }
    fn parts(&self) -> Vec<(&'static str, &'static str)> {
        vec![(LIMIT, LIMIT_OF_SPINNING), ("spin", BARE_SPINNING)]
    }
}

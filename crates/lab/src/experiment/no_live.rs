// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run where no folder of it can be looked into tells nothing while it goes on: `doorbell top --serve` is Linux's.

use doorbell_harness::run_dir::RunDir;
use doorbell_results::plan::Plan;
use doorbell_results::record::Record;

/// Tells nobody.
#[derive(Debug)]
pub struct Told;

impl Told {
    /// Begins it.
    pub fn begin(_: &RunDir, _: &Plan, _trials: usize, _command_line: &[String]) -> Self {
        Self
    }

    /// A trial ended.
    pub fn ended(&mut self, _: &Record) {}
}

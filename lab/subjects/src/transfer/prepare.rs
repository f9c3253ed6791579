// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes and fills what a plan transfers between, before the first trial.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use doorbell_harness::run_dir::RunDir;
use doorbell_results::configuration::{Direction, Target};
use doorbell_results::plan::Plan;

use super::scratch::{self, ScratchError};
use super::target;

/// Makes and fills what `plan` transfers between, before the first
/// trial; nothing for plans of other experiments. Where the user has
/// `interrupted`, it stops: what is there goes with the run's folder.
pub fn prepare(plan: &Plan, run_dir: &RunDir, interrupted: &AtomicBool) -> io::Result<()> {
    let mut targets: Vec<(&Target, u32)> = Vec::new();
    for configuration in &plan.configurations {
        if let Some(target) = &configuration.target
            && !targets.iter().any(|(known, _)| *known == target)
        {
            targets.push((target, configuration.size));
        }
    }
    for (target, block) in targets {
        let made = match target {
            Target::Created { bytes, folder, passes } => {
                // As fio does: where the user stands.
                let folder = folder.clone().unwrap_or_else(|| PathBuf::from("."));
                scratch::make(run_dir, &folder, *bytes, *passes, interrupted)
            }
            Target::Device { path, passes, .. } if *passes > 0 => {
                let opened = target::open(target, Direction::Write, true, block, run_dir.path());
                let opened = opened.map_err(io::Error::other)?;
                let bytes = opened.bytes;
                scratch::fill_device(run_dir, path, opened.file, bytes, *passes, interrupted)
            }
            Target::File { .. } | Target::Device { .. } => Ok(()),
        };
        match made {
            // Who carries the plan out sees it too, before the first trial.
            Err(ScratchError::Interrupted(_)) => return Ok(()),
            made => made.map_err(io::Error::other)?,
        }
    }
    Ok(())
}

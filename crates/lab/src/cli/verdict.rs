// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the verbs that answer a question share: the doctor first, then a run or an old result, then the verdict.

use std::io::Write;
use std::path::PathBuf;

use super::common::{Exit, RunArgs, Terminal, machine_here};
use crate::experiment::plan::Plan;
use crate::machine::Machine;
use crate::machine::doctor::{Severity, worst};
use crate::record::{ResultFile, read};
use crate::view::doctor::{Detail, doctor};
use crate::view::passage::{self, Passage};
use crate::view::style::Style;

/// Where a verdict takes its figures from.
#[derive(Debug, Clone, clap::Args)]
pub struct Source {
    /// Judge this result instead of measuring (`-` for standard input)
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Measure even where the doctor calls this machine unfit
    #[arg(long)]
    pub anyway: bool,
}

/// Where the figures of a verdict come from.
#[derive(Debug)]
pub enum Figures {
    /// This result: just measured, or one that was there.
    Of(Box<ResultFile>),
    /// None: this is how the command ends.
    None(Exit),
}

impl Source {
    /// The result to judge: the one named, or that of carrying out what `plan` makes of this machine, once its doctor was heard on
    /// standard error.
    pub fn figures(
        &self,
        run: &RunArgs,
        terminal: &Terminal,
        plan: impl FnOnce(&Machine) -> anyhow::Result<Plan>,
    ) -> anyhow::Result<Figures> {
        if let Some(path) = &self.from {
            return Ok(Figures::Of(Box::new(read::read(path)?)));
        }
        let machine = machine_here();
        // What was asked for wrongly is told before anything about the machine.
        let plan = plan(&machine)?;
        if run.dry_run {
            return Ok(Figures::None(run.run(plan, machine, terminal)?));
        }
        let refused = worst(&machine.findings) == Severity::Unfit && !self.anyway;
        if refused || !terminal.quiet {
            let mut err = std::io::stderr();
            err.write_all(doctor(&machine, Detail::Brief, &Style::of_stdout()).as_bytes())?;
            let cure = if refused { "Mend that, or measure as it is with --anyway.\n" } else { "" };
            writeln!(err, "{cure}")?;
        }
        if refused {
            return Ok(Figures::None(Exit::Unfit));
        }
        Ok(Figures::Of(Box::new(run.measure(plan, machine, terminal)?)))
    }

    /// Saves what was just measured and shows the verdict; of an old result only the latter. How the verdict ends the command
    /// counts, unless the run itself failed or was interrupted. A run that cannot be judged, perhaps because it was interrupted
    /// before its first trial, is saved and shown as any other.
    pub fn deliver(
        &self,
        run: &RunArgs,
        terminal: &Terminal,
        result: &ResultFile,
        judged: anyhow::Result<(Vec<Passage>, Exit)>,
    ) -> anyhow::Result<Exit> {
        let text = |verdict: &[Passage]| passage::verdict(verdict, result, &Style::of_stdout());
        if self.from.is_some() {
            let (verdict, exit) = judged?;
            std::io::stdout().write_all(text(&verdict).as_bytes())?;
            return Ok(exit);
        }
        let (ended, verdict) = match judged {
            Ok((verdict, exit)) => (run.deliver_as(result, terminal, || text(&verdict))?, Ok(exit)),
            Err(error) => (run.deliver(result, terminal)?, Err(error)),
        };
        match ended {
            Exit::Done => verdict,
            ended => Ok(ended),
        }
    }
}

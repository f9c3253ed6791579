// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment is: arguments that plan configurations, and what is told of the result.

use super::common::{Exit, RunArgs, Terminal};
use super::{bounds, plan_file};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;

/// Arguments that make a plan. Everything that a view or a verdict has to know of the experiment is
/// stored with the plan, so that a result tells the same in a build that does not have it.
pub trait Experiment {
    /// By which its plans and results are called.
    fn name(&self) -> &'static str;

    /// What concerns the run.
    fn flags(&self) -> &RunArgs;

    /// What the arguments ask for on `machine`.
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan>;

    /// The sections in which its result is told: see `Section` of the crate for reports. None is a
    /// table for each quantity.
    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    /// The part that each subject plays in what is told.
    fn parts(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Whose claims its result can speak to.
    fn claims(&self) -> Option<&'static str> {
        None
    }

    /// The plan of the file, if one was named, else what the
    /// arguments make; with what is told of its result.
    fn planned(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let flags = self.flags();
        let mut plan = match &flags.plan {
            Some(path) => plan_file::read(path, self.name(), &machine.topology)?,
            None => self.plan(machine)?,
        };
        if flags.plan.is_some() {
            plan = plan.with_blocks(flags.blocks);
            plan.seed = flags.seed.unwrap_or(plan.seed);
        }
        // A file may say otherwise.
        if plan.sections.is_empty() {
            plan.sections = self.sections().iter().map(|name| (*name).to_owned()).collect();
        }
        if plan.parts.is_empty() {
            let there = |subject: &str| {
                plan.configurations.iter().any(|configuration| configuration.subject == subject)
            };
            let parts = self.parts().into_iter().filter(|(subject, _)| there(subject));
            plan.parts = parts.map(|(subject, part)| (subject.to_owned(), part.to_owned())).collect();
        }
        plan.claims = plan.claims.or_else(|| self.claims().map(str::to_owned));
        bounds::check(&plan)?;
        Ok(plan)
    }

    /// Carries the plan out, saves the result and shows it.
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit>
    where
        Self: Sized,
    {
        let machine = self.flags().machine()?;
        let plan = self.planned(&machine)?;
        self.flags().measure_and_deliver(plan, machine, terminal)
    }
}

/// Carries out an experiment as a verb.
pub fn run(experiment: impl Experiment, terminal: &Terminal) -> anyhow::Result<Exit> {
    experiment.run(terminal)
}

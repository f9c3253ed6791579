// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment is: arguments that plan configurations, and what is told of the result.

use super::common::{Exit, RunArgs, Terminal};
use super::{bounds, plan_file};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::record::ResultFile;

/// What every view and verdict has to know of an experiment. It is stored with the plan, so that a
/// result tells the same in a build that does not have the experiment.
#[derive(Debug, Default)]
pub struct About {
    /// By which its plans and results are called.
    pub name: &'static str,
    /// The sections in which its result is told: see `Section` of the crate for reports. None is a
    /// table for each quantity.
    pub sections: &'static [&'static str],
    /// The part that each subject plays in what is told.
    pub parts: Vec<(&'static str, &'static str)>,
    /// Whose claims its result can speak to.
    pub claims: Option<&'static str>,
}

/// Arguments that make a plan.
pub trait Experiment: Sized {
    fn about(&self) -> About;

    /// What concerns the run.
    fn flags(&self) -> &RunArgs;

    /// What the arguments ask for on `machine`.
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan>;

    /// Says what is to be known before the plan is carried out; an exit ends the verb instead.
    fn before(&self, _: &Plan, _: &Machine, _: &Terminal) -> anyhow::Result<Option<Exit>> {
        Ok(None)
    }

    /// Adds to the result what the run does not know.
    fn complete(&self, _: &mut ResultFile) {}

    /// Whether a result in which trials came to their end says anything of what was asked.
    fn answers(&self, _: &ResultFile) -> bool {
        true
    }

    /// The plan of the file, if one was named, else what the arguments make, under each load asked
    /// for; with what is told of its result.
    fn planned(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let (flags, about) = (self.flags(), self.about());
        let mut plan = match &flags.plan {
            Some(path) => plan_file::read(path, about.name, &machine.topology)?,
            None => self.plan(machine)?,
        };
        if flags.plan.is_some() {
            plan = plan.with_blocks(flags.blocks);
            plan.seed = flags.seed.unwrap_or(plan.seed);
        }
        // A file may say otherwise.
        if plan.sections.is_empty() {
            plan.sections = about.sections.iter().map(|name| (*name).to_owned()).collect();
        }
        if plan.parts.is_empty() {
            let there = |subject: &str| {
                plan.configurations.iter().any(|configuration| configuration.subject == subject)
            };
            let parts = about.parts.into_iter().filter(|(subject, _)| there(subject));
            plan.parts = parts.map(|(subject, part)| (subject.to_owned(), part.to_owned())).collect();
        }
        plan.claims = plan.claims.or_else(|| about.claims.map(str::to_owned));
        let plan = flags.loaded(plan, machine);
        bounds::check(&plan)?;
        Ok(plan)
    }

    /// Carries the plan out, saves the result and shows it.
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        let run = self.flags();
        let machine = run.machine()?;
        let plan = self.planned(&machine)?;
        if run.only_planned(&plan)? {
            return Ok(Exit::Done);
        }
        if let Some(exit) = self.before(&plan, &machine, terminal)? {
            return Ok(exit);
        }
        let mut result = run.measure(plan, machine, terminal)?;
        self.complete(&mut result);
        Ok(match run.delivery.deliver(&result, terminal)? {
            Exit::Done if !self.answers(&result) => Exit::Failed,
            exit => exit,
        })
    }
}

/// Carries out an experiment as a verb.
pub fn run(experiment: impl Experiment, terminal: &Terminal) -> anyhow::Result<Exit> {
    experiment.run(terminal)
}

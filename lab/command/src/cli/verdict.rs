// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the verbs that answer a question share: the doctor first,
//! then a run or an old result, then the verdict.

use std::path::PathBuf;

use super::common::{Delivery, Exit, RUN, Terminal};
use super::experiment::Experiment;
use super::out::{self, aside};
use super::usage::{Usage, refuse};
use doorbell_report::doctor::{Detail, doctor};
use doorbell_report::judgement::{Answer, NoAnswer, answer};
use doorbell_report::result_text::judged as judged_text;
use doorbell_report::screen::cautioned;
use doorbell_report::style::Style;
use doorbell_report::verdict_format::FORMATS;
use doorbell_results::machine::doctor::{Severity, worst};
use doorbell_results::record::question::Question;
use doorbell_results::record::verdict::Verdict;
use doorbell_results::record::{ResultFile, read};

/// Where a verdict takes its figures from.
#[derive(Debug, Clone, clap::Args)]
pub struct Source {
    /// Judge this result instead of measuring (`-` for standard input)
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Measure even where the doctor calls this machine unfit
    #[arg(long, help_heading = RUN)]
    pub anyway: bool,
    #[command(flatten, next_help_heading = RUN)]
    form: Form,
}

/// In which form a verdict is printed.
#[derive(Debug, Clone, clap::Args)]
pub struct Form {
    /// Print the verdict in this form, for other programs
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = forms())]
    format: String,
}

fn forms() -> clap::builder::PossibleValuesParser {
    std::iter::once("text").chain(FORMATS.map(|(name, _)| name)).collect::<Vec<_>>().into()
}

impl Form {
    /// What writes it; none for people.
    pub fn writer(&self) -> Option<fn(&str, &Verdict) -> String> {
        FORMATS.into_iter().find(|(name, _)| *name == self.format).map(|(_, write)| write)
    }
}

impl Source {
    /// Answers the question of `experiment`, with `others` at hand: of the result named, or of that
    /// of carrying out its plan. What is asked is what it was measured for, or of an old result
    /// what the `flags` ask.
    pub fn answer(
        &self,
        experiment: &impl Experiment,
        flags: impl FnOnce(&ResultFile) -> Result<Question, Usage>,
        others: &[&ResultFile],
        terminal: &Terminal,
    ) -> anyhow::Result<Exit> {
        let mut result = match &self.from {
            Some(path) => read::read(path)?,
            None => match self.measured(experiment, terminal)? {
                Ok(result) => result,
                Err(exit) => return Ok(exit),
            },
        };
        let question = match &result.plan.question {
            Some(question) if self.from.is_none() => question.clone(),
            _ => flags(&result)?,
        };
        self.deliver(&experiment.flags().delivery, terminal, &mut result, &question, others)
    }

    /// The result of carrying out the plan of `experiment`, once its doctor was heard on standard
    /// error; or how the command ends without one.
    fn measured(
        &self,
        experiment: &impl Experiment,
        terminal: &Terminal,
    ) -> anyhow::Result<Result<ResultFile, Exit>> {
        let (verb, run) = (experiment.about().name, experiment.flags());
        let machine = run.machine()?;
        // What was asked for wrongly is told before anything about the machine.
        let plan = experiment.planned(&machine)?;
        if plan.question.is_none() {
            let named = run.plan.as_deref().map_or_else(String::new, |path| path.display().to_string());
            return refuse(format!(
                "{named}: the plan asks nothing, so that there is nothing to answer; `doorbell {verb} \
                 --save-plan FILE` writes one that does"
            ));
        }
        if run.only_planned(&plan)? {
            return Ok(Err(Exit::Done));
        }
        let refused = worst(&machine.findings) == Severity::Unfit && !self.anyway;
        if refused || !terminal.quiet {
            let cure = if refused { "Fix that, or measure as it is with --anyway.\n" } else { "" };
            aside!("{}{cure}", doctor(&machine, Detail::Brief, &Style::of_stdout()));
        }
        if refused {
            return Ok(Err(Exit::Unfit));
        }
        Ok(Ok(run.measure(plan, machine, terminal)?))
    }

    /// Answers `question` of `result`, with `others` at hand. Saves what was
    /// just measured and shows the verdict; of an old result only the latter.
    /// How the verdict ends the command counts, unless the run itself failed
    /// or was interrupted. A run that cannot be judged, perhaps because it was
    /// interrupted before its first trial, is saved and shown as any other.
    fn deliver(
        &self,
        to: &Delivery,
        terminal: &Terminal,
        result: &mut ResultFile,
        question: &Question,
        others: &[&ResultFile],
    ) -> anyhow::Result<Exit> {
        let judged = answer(question, result, others).map_err(refused);
        let text = |answer: &Answer, result: &ResultFile| match self.form.writer() {
            Some(write) => {
                let verdict = cautioned(answer.verdict(result), result);
                write(&format!("doorbell {}", result.plan.experiment), &verdict)
            }
            None => judged_text(answer, result, to.detail(), &Style::of_stdout()),
        };
        if self.from.is_some() {
            let answer = judged?;
            out::say(&text(&answer, result));
            return Ok(Exit::from(answer.status));
        }
        let (ended, verdict) = match judged {
            Ok(answer) => {
                result.verdict = Some(answer.verdict(result));
                let ended = to.deliver_as(result, terminal, || text(&answer, result))?;
                (ended, Ok(Exit::from(answer.status)))
            }
            Err(error) => (to.deliver(result, terminal)?, Err(error)),
        };
        match (ended, verdict) {
            (Exit::Done, Err(error)) => Err(error),
            (ended, verdict) => Ok(ended.and_verdict(verdict.unwrap_or(ended))),
        }
    }
}

/// A question that the result named has no trials for was asked of the wrong file.
fn refused(error: NoAnswer) -> anyhow::Error {
    match error {
        NoAnswer::NoSpinning | NoAnswer::NoWakes | NoAnswer::UnknownNeed(_) => {
            Usage(error.to_string()).into()
        }
        error => error.into(),
    }
}

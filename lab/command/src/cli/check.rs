// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell check`.

use std::path::{Path, PathBuf};

use super::common::{Exit, RunArgs, Terminal};
use super::experiment::{About, Experiment};
use super::kept::{self, Named};
use super::plan_file;
use super::usage::{Usage, refuse};
use super::verdict::Source;
use doorbell_results::machine::Machine;
use doorbell_results::nearest::{did_you_mean, nearest};
use doorbell_results::plan::Plan;
use doorbell_results::record::question::{Baseline, Check, Condition, Question, condition};
use doorbell_results::record::{ResultFile, read};

/// Arguments of `doorbell check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  not worse: every condition was shown to be kept\n  3  worse: some condition was shown to be broken\n  \
    4  inconclusive, or this machine is unfit to measure\n\n\
    EXAMPLES\n  \
    doorbell ping futex pipe --gap 0 --save-baseline main       again later: it adds a run\n  \
    doorbell check --baseline main                              p50 more than 5 % longer?\n  \
    doorbell check --baseline main --format junit               the same for a build server\n  \
    doorbell check --baseline main --fail-if 'p99>+5%' --fail-if 'futex:p50>+2%' --fail-if 'lost>0'\n  \
    doorbell check --baseline main.json --fail-if 'p99.9>100us' --blocks 60\n  \
    doorbell check --baseline main.json --from branch.json       what was measured before\n  \
    doorbell check --baseline a --baseline b --baseline c --baseline d --baseline e\n  \
                                                                five runs show what differs from run to run")]
pub struct Args {
    /// The result whose plan is run again: a file, `-` for standard input, or a name given with
    /// --save-baseline, which stands for all runs kept under it. Given again it names further runs
    /// of that plan on this machine, at other times; five in all show what differs from run to run,
    /// which else is assumed
    #[arg(long, value_name = "RESULT", required = true)]
    pub(super) baseline: Vec<PathBuf>,
    /// When it fails: [MECHANISM:]p50>+5% or p99>+5% against the baseline, or p99.9>50us, max>1ms,
    /// lost>0, late>0; may be given more than once
    #[arg(long, value_parser = condition, value_name = "CONDITION", default_value = "p50>+5%")]
    fail_if: Vec<Condition>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs `doorbell check`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    let from = args.source.from.as_deref();
    let named = args.baseline.iter().map(PathBuf::as_path).chain(from);
    if named.filter(|path| path.as_os_str() == "-").count() > 1 {
        return refuse("standard input can be read only once; name the other file");
    }
    let found = args.baseline.iter().map(|named| kept::find_runs(named)).collect::<Result<Vec<_>, _>>()?;
    let found: Vec<Named> = found.into_iter().flatten().collect();
    let there = |path: &Path| path.canonicalize().ok();
    let output = args.run.delivery.output.as_deref().and_then(there);
    if let Some(baseline) = found.iter().find(|found| output.is_some() && output == there(&found.path)) {
        let named = baseline.path.display();
        return refuse(format!(
            "{named} is the baseline, which would be gone; name another file with --output"
        ));
    }
    let (first, more) = found.split_first().ok_or_else(|| Usage("a check needs a --baseline".to_owned()))?;
    let first = &first.path;
    let baseline = if from.is_some() { read::read(first)? } else { plan_file::of_a_result(first)? };
    concerned(&args.fail_if, &baseline)?;
    let more: Vec<ResultFile> = more.iter().map(|run| read::read(&run.path)).collect::<Result<_, _>>()?;
    let names = found.iter().map(|run| run.name.as_path());
    let question = question(&args, names.zip(std::iter::once(&baseline).chain(&more)))?;
    let repeat = Repeat { args: &args, baseline: &baseline, question: &question };
    let others: Vec<&ResultFile> = std::iter::once(&baseline).chain(&more).collect();
    args.source.answer(&repeat, |_| Ok(question.clone()), &others, terminal)
}

fn question<'run>(
    args: &Args,
    files: impl Iterator<Item = (&'run Path, &'run ResultFile)>,
) -> Result<Question, Usage> {
    let mut runs: Vec<Baseline> = Vec::new();
    for (path, result) in files {
        if runs.iter().any(|run| run.is(result)) {
            let twice = path.display();
            return Err(Usage(format!("{twice} is a run that was named before: name another --baseline")));
        }
        runs.push(Baseline::of(path.display().to_string(), result));
    }
    let baseline = runs.remove(0);
    Ok(Question::Check(Check { baseline, more: runs, conditions: args.fail_if.clone() }))
}

/// Every condition is about something that the baseline has.
fn concerned(conditions: &[Condition], baseline: &ResultFile) -> Result<(), Usage> {
    for condition in conditions {
        let (Some(subject), false) = (
            &condition.subject,
            baseline.plan.configurations.iter().any(|configuration| {
                condition.concerns(configuration, baseline.is_harness(&configuration.subject))
            }),
        ) else {
            continue;
        };
        let names = baseline.plan.configurations.iter().map(|configuration| configuration.subject.as_str());
        return Err(Usage(format!(
            "'{}': the baseline has nothing called '{subject}'{}",
            condition.text,
            did_you_mean(nearest(subject, names))
        )));
    }
    Ok(())
}

/// The baseline's run once more.
struct Repeat<'run> {
    args: &'run Args,
    baseline: &'run ResultFile,
    question: &'run Question,
}

impl Experiment for Repeat<'_> {
    fn about(&self) -> About {
        About { name: "check", ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.args.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
}

/// The baseline's plan, on this machine.
fn plan(Repeat { args, baseline, question }: &Repeat, machine: &Machine) -> anyhow::Result<Plan> {
    if !args.run.load.is_empty() {
        return refuse("the load is the baseline's; measure another baseline for another load");
    }
    // What a file says is no consent: the device of that name may be
    // another by now, and the file somebody else's.
    if let Some(configuration) =
        baseline.plan.configurations.iter().find(|configuration| configuration.target.is_some())
    {
        return refuse(format!(
            "the baseline transfers blocks ('{}'), and a check repeats nothing that writes to a \
             file or a device: run `doorbell io` again and give its result with --from",
            configuration.subject
        ));
    }
    let placements =
        baseline.plan.configurations.iter().filter_map(|configuration| configuration.placement.cpus);
    machine.topology.check(&placements.flatten().collect::<Vec<_>>()).map_err(|error| {
        Usage(format!("the baseline ran on CPUs that this machine has not: {error}; measure a baseline here"))
    })?;
    let mut plan = baseline.plan.clone();
    // A baseline that was slowed to test this is repeated as it should have been.
    plan.configurations.iter_mut().for_each(|configuration| configuration.injected_slowdown_ppm = None);
    plan.blocks = args.run.blocks.unwrap_or(plan.blocks);
    // They were for the question that it was measured for.
    plan.looks.clear();
    plan.seed = args.run.seed();
    plan.question = Some((*question).clone());
    Ok(plan)
}

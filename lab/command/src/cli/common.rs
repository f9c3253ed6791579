// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several verbs share: the terminal, and the flags of every run.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};

pub use super::exit::Exit;
use super::kept::{baseline_name, remember, save_baseline, state_folder};
use super::load::{Asked, load};
use super::out::{self, Out, aside};
use super::plan_file::save;
use super::signals;
use super::usage::Usage;
use crate::run::{self, Conditions};
use doorbell_harness::scheduler::set_usual;
use doorbell_report::progress::Progress;
use doorbell_report::result_text::{Detail, shown};
use doorbell_report::screen;
use doorbell_report::style::Style;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::record::result::SCHEMA_VERSION;
use doorbell_results::record::write::{WriteError, to_json, try_out, write, write_to};
use doorbell_results::record::{Record, ResultFile};
use doorbell_results::written::pretty_json;
use doorbell_verdict::unmeasured::{Unmeasured, unmeasured};

/// Causes for which nothing was measured that are told at once; of a mishap there is one.
const MOST_CAUSES: usize = 3;
/// How long the clock is calibrated: an error of 50 ns in either
/// bracket then is one part in a million.
const CALIBRATION: Duration = Duration::from_millis(50);

/// The machine, with a clock calibrated on the spot.
pub fn machine_here() -> Machine {
    doorbell_machine::here(doorbell_machine::clock::calibrate(CALIBRATION))
}

/// The names asked for, each once; where the word `all` stands, `all`. An unknown one is a usage
/// error, as `find` tells it.
pub fn named<'name, T, E: std::fmt::Display>(
    asked: &[String],
    all: impl IntoIterator<Item = &'name str> + Clone,
    find: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<String>, Usage> {
    let mut chosen = Vec::new();
    for name in asked {
        if name == "all" {
            chosen.extend(all.clone().into_iter().map(str::to_owned));
        } else {
            find(name).map_err(Usage::of)?;
            chosen.push(name.clone());
        }
    }
    once(&mut chosen);
    Ok(chosen)
}

/// Leaves the first of each name.
pub fn once(names: &mut Vec<String>) {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How to talk to the user.
#[derive(Debug, Clone, Copy, Args)]
pub struct Terminal {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// No progress on standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

impl Terminal {
    /// Settles the choice for everything that prints.
    pub fn apply(&self) {
        match self.color {
            Color::Auto => {}
            Color::Always => {
                console::set_colors_enabled(true);
                console::set_colors_enabled_stderr(true);
            }
            Color::Never => {
                console::set_colors_enabled(false);
                console::set_colors_enabled_stderr(false);
            }
        }
    }
}

/// The heading of flags that shape no plan, and may stand beside one.
pub const RUN: &str = "Run";

/// Flags of what becomes of a result.
#[derive(Debug, Clone, Default, Args)]
pub struct Delivery {
    /// Where the result file goes (`-` for standard output) [default:
    /// a new file in the user's state folder]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A name for the result, shown by `compare` and `report`
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Print the result file to standard output instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print every table, warning and primitive cost below the answer
    #[arg(long)]
    pub details: bool,
    /// Keep the result also as a run of the baseline of this name, for `check
    /// --baseline NAME` and `compare NAME`
    #[arg(long, value_name = "NAME", value_parser = baseline_name)]
    pub save_baseline: Option<String>,
}

/// Flags of every verb that runs trials.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = RUN)]
pub struct RunArgs {
    #[command(flatten, next_help_heading = RUN)]
    pub delivery: Delivery,
    /// What keeps the machine busy meanwhile, comma separated, each for every configuration: idle,
    /// full (square roots, five workers for every three CPUs), or KIND[:WORKERS][:pinned] of
    /// sqrt, cpu, cache, memory, churn [default: idle]
    #[allow(rustdoc::broken_intra_doc_links, reason = "the brackets say in the help what may be left out")]
    #[arg(long, value_delimiter = ',', value_parser = load, value_name = "LOAD")]
    pub load: Vec<Asked>,
    /// Repetitions of every configuration, in random order within each block
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks: Option<u32>,
    /// Seed of the random orders [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run the plan in this file (`-` for standard input): TOML or JSON as --save-plan writes it,
    /// or a result, whose plan is run again
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Write the plan to this file and stop: TOML, or JSON where its
    /// name ends in .json (`-` for standard output)
    #[arg(long, value_name = "FILE")]
    pub save_plan: Option<PathBuf>,
    /// Print the plan and stop
    #[arg(long)]
    pub dry_run: bool,
}

impl RunArgs {
    /// The seed asked for, or one from the clock; it is stored with the plan.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| unix_ns(SystemTime::now()))
    }

    /// `plan` with each of its configurations under each load asked for.
    pub fn loaded(&self, plan: Plan, machine: &Machine) -> Plan {
        if self.load.is_empty() { plan } else { under(&self.load, plan, machine) }
    }

    /// Shows or writes `plan` where nothing else was asked for; whether that is so.
    pub fn only_planned(&self, plan: &Plan) -> anyhow::Result<bool> {
        if let Some(path) = &self.save_plan {
            save(plan, path)?;
        } else if self.dry_run {
            out::say(&(pretty_json(plan)? + "\n"));
        }
        Ok(self.dry_run || self.save_plan.is_some())
    }

    /// The machine that is about to be measured. Whoever ends the command from here on gets a
    /// result, however little is in it.
    pub fn machine(&self) -> anyhow::Result<Machine> {
        signals::listen()?;
        // Before it is looked at: what is recorded is what the sides will inherit.
        if let Some(policy) = set_usual() {
            aside!(
                "doorbell: it was started under {policy}, and measures under what its plan says (--scheduler)"
            );
        }
        Ok(machine_here())
    }

    /// Carries `plan` out.
    pub fn measure(&self, plan: Plan, machine: Machine, terminal: &Terminal) -> anyhow::Result<ResultFile> {
        self.delivery.writable()?;
        if std::env::var_os(signals::COMPARED).is_some() {
            // `compare --live` may be killed meanwhile.
            signals::listen_to_reader()?;
        }
        let mut result = carry_out(plan, machine, self.delivery.name.clone(), terminal)?;
        // What was asked something is judged by that, once all that it is held against is at hand.
        result.verdict = result.plan.question.is_none().then(|| screen::verdict(&result));
        Ok(result)
    }
}

impl Delivery {
    /// The error that the result would meet after minutes of measuring, met before them.
    pub fn writable(&self) -> anyhow::Result<()> {
        match &self.output {
            Some(target) => try_out(target)?,
            // What is printed whole needs no file.
            None if self.json => {}
            None => try_out(&state_folder()?.join("result.json"))?,
        }
        Ok(())
    }

    /// How much of a result is shown.
    pub fn detail(&self) -> Detail {
        if self.details { Detail::Full } else { Detail::Brief }
    }

    /// Saves and shows the result.
    pub fn deliver(&self, result: &ResultFile, terminal: &Terminal) -> anyhow::Result<Exit> {
        self.deliver_as(result, terminal, || shown(result, &[], self.detail(), &Style::of_stdout()))
    }

    /// Saves the result and shows what `text` makes of it.
    pub fn deliver_as(
        &self,
        result: &ResultFile,
        terminal: &Terminal,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<Exit> {
        let to_stdout = self.output.as_deref().is_some_and(|target| target.as_os_str() == "-");
        let mut target = match &self.output {
            Some(target) => Some(target.clone()),
            None if self.json => fresh_file(result).ok(),
            None => Some(fresh_file(result)?),
        };
        let ended = Exit::of_run(result);
        if ended == Exit::Interrupted
            && let Some(file) = target.as_ref().filter(|target| !to_stdout && holds_something(target))
        {
            aside!("doorbell: {} stays as it was, for the run did not come to its end", file.display());
            target = Some(fresh_file(result)?);
        }
        let mut saved = match &target {
            Some(target) if to_stdout => write_to(result, target, &mut Out::new()),
            Some(target) => write(result, target),
            None => Ok(()),
        };
        let left = |error: &WriteError| error.cause.kind() == ErrorKind::BrokenPipe;
        let read_by_nobody = to_stdout && out::gone() || saved.as_ref().is_err_and(left);
        if read_by_nobody {
            // It goes where it would have gone without being asked for.
            let file = fresh_file(result)?;
            saved = write(result, &file);
            target = Some(file);
        }
        match (to_stdout, self.json) {
            (true, _) => {}
            (false, true) => out::say(&to_json(result)),
            (false, false) => out::say(&text()),
        }
        if let Err(error) = saved {
            if error.rescued.is_none() && !self.json && !to_stdout {
                // No folder took it: the terminal, or whatever stands behind it, is the last that can.
                out::say(&to_json(result));
            }
            out::failed(error.into());
            target = None;
        }
        let mut kept = String::new();
        if let Some(name) = &self.save_baseline {
            if ended == Exit::Done {
                kept = match save_baseline(name, result)? {
                    1 => format!(", kept as baseline {name}"),
                    runs => format!(", kept as baseline {name}, which has {runs} runs"),
                };
            } else {
                // It may be all that later runs are held against.
                aside!(
                    "doorbell: not kept as baseline {name}, for the run did not come to its end: \
                     what was kept before stays"
                );
            }
        }
        if let Some(unmeasured) = unmeasured(result).filter(|_| !result.partial) {
            let why = match &target {
                _ if !unmeasured.has_causes() => String::new(),
                Some(file) if !to_stdout || read_by_nobody => {
                    format!("; `doorbell show --details {}` has each", file.display())
                }
                _ => "; each record has its outcome".to_owned(),
            };
            for line in unmeasured_lines(&unmeasured, &why) {
                aside!("doorbell: {line}");
            }
        }
        let Some(target) = target else { return Ok(ended) };
        if !to_stdout || read_by_nobody {
            remember(&target);
        }
        if !terminal.quiet && !to_stdout {
            // The path has a line of its own: with anything after it a terminal of 80 columns
            // breaks it.
            aside!(
                "Saved as {}{kept}\nAll of it: doorbell show --details; a page: doorbell report",
                target.display()
            );
        }
        Ok(ended)
    }
}

/// `plan` with each of its configurations under each of `loads`.
pub fn under(loads: &[Asked], plan: Plan, machine: &Machine) -> Plan {
    let cpus = machine.topology.usable.len();
    let mut configurations = Vec::new();
    for configuration in &plan.configurations {
        for asked in loads {
            let configuration = Configuration { load: asked.on(cpus), ..configuration.clone() };
            if !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        }
    }
    Plan { configurations, ..plan }
}

/// What was not measured, with what to do about it, and each cause of it.
pub fn unmeasured_lines(unmeasured: &Unmeasured, more: &str) -> Vec<String> {
    let causes = unmeasured.causes.iter().take(MOST_CAUSES).cloned();
    std::iter::once(format!("{unmeasured}{more}")).chain(causes).collect()
}

/// Carries `plan` out, and judges nothing.
pub fn carry_out(
    plan: Plan,
    machine: Machine,
    name: Option<String>,
    terminal: &Terminal,
) -> anyhow::Result<ResultFile> {
    let conditions = Conditions { name, command_line: command_line(), interrupted: signals::listen()? };
    let shown = !terminal.quiet && console::Term::stderr().is_term();
    let mut progress = Progress::new(&plan, Style::of_stdout(), shown);
    let result = run::carry_out(plan, machine, &conditions, &mut progress);
    progress.end();
    Ok(result?)
}

/// The result of a run that began then and ends now.
pub fn ended_now(plan: Plan, machine: Machine, begun: SystemTime, records: Vec<Record>) -> ResultFile {
    ResultFile {
        verdict: None,
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line(),
        name: None,
        started_at_unix_ns: unix_ns(begun),
        finished_at_unix_ns: unix_ns(begun.max(SystemTime::now())),
        partial: false,
        machine,
        plan,
        primitives: Vec::new(),
        records,
        beside: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Nanoseconds since the first of January 1970.
pub fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The words of this command, for the result; bytes that are not
/// UTF-8 are replaced, as JSON has none.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether a file is there that has something in it, which may be all that was ever measured.
fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0)
}

/// A new file in the user's state folder, named after the experiment and the time.
fn fresh_file(result: &ResultFile) -> std::io::Result<PathBuf> {
    let seconds = result.started_at_unix_ns / 1_000_000_000;
    let name = format!("{}-{seconds}-{}.json", result.plan.experiment, std::process::id());
    Ok(state_folder()?.join(name))
}

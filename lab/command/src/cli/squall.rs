// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell vm run --guest squall -- tasks`: the tasks of Squall (`squall/`), as a result file.
//!
//! Squall prints a line of JSON for each variant. Its clock is the instructions it retires, one to
//! a nanosecond, so a figure of n nanoseconds is n instructions, the same in every run. Linux, on
//! the same machine, has the same clock; there the lab itself runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::ArgMatches;
use clap::parser::ValueSource;
use doorbell_results::figure::task::{CEILING, MOVES_PER_TASK, SWITCHES_PER_HANDOFF, TASK_BYTES};
use doorbell_results::figure::timer_ticks;
use doorbell_vm::squall;
use serde::Deserialize;

use super::common::ended_now;
use super::numbers::Numbers;
use super::usage::{Usage, refuse};
use crate::run::subject::record as bare_record;
use doorbell_report::tasks::CONTROL;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Until};
use doorbell_results::machine::Machine;
use doorbell_results::machine::virtualisation::{TRANSLATOR, Virtualisation, Vm};
use doorbell_results::plan::Plan;
use doorbell_results::quantity::refused;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{MadeOf, Measured, Subject};
use doorbell_results::record::{Environment, Figure, Histogram, Outcome, Record, ResultFile, Series, Tally};
use doorbell_subjects::mechanism::Contexts;
use doorbell_verdict::claims::coroutines::{BOARD, COROUTINES_ALONE, MAKING, SOURCE, SWITCHING};

/// A kind of task: its name in the lab, and Squall's.
struct Kind {
    lab: &'static str,
    squall: &'static str,
    does: Does,
}

/// What its tasks do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Hand over in one address space.
    HandOver,
    /// Hand over from one to the next of so many address spaces, with as many tasks in each.
    Cross(u32),
    /// Hand over, each with an address space.
    Process,
    /// Are made, run once and gone.
    Live,
}
use Does::{Cross, HandOver, Live, Process};

const fn kind(lab: &'static str, squall: &'static str, does: Does) -> Kind {
    Kind { lab, squall, does }
}

/// All kinds that can be asked for.
const KINDS: &[Kind] = &[
    kind("call", "call", HandOver),
    kind("stackless", "future", HandOver),
    kind("stackful", "stackful", HandOver),
    kind("stackful-keeping-12", "stackful-keeping-12", HandOver),
    kind("kernel-task", "kernel-task", HandOver),
    kind("stackful-across-3-spaces", "stackful-across-3-spaces", Cross(3)),
    kind("stackless-across", "future-across", Cross(2)),
    kind("stackful-across", "stackful-across", Cross(2)),
    kind("stackful-across-keeping-12", "stackful-across-keeping-12", Cross(2)),
    kind("process-yield", "process", Process),
    kind("process-yield-in-entry", "process-in-entry", Process),
    kind("process-yield-kernel-stack", "process-kernel-stack", Process),
    kind("life-future", "life-future", Live),
    kind("life-fork", "fork-copy", Live),
    kind("life-fork-cow", "fork-copy-on-write", Live),
    kind("life-fork-kernel-stack", "fork-copy-kernel-stack", Live),
    kind("life-spawn", "spawn", Live),
];

/// Numbers of tasks where none is asked for: those that every kind can have.
const USUAL_TASKS: [u32; 2] = [12, 1200];

/// The study's own experiments, on its queue and on one that is O(1).
const STUDY: [Kind; 4] = [
    kind("stackless-rotating", "document-coroutine", HandOver),
    kind("stackless-head", "document-coroutine-head", HandOver),
    kind("process-pair-rotating", "document-process", Cross(2)),
    kind("process-pair", "document-process-head", Cross(2)),
];

/// Its coroutines, made, run once and gone, on its queue.
const STUDY_LIVES: Kind = kind("life-future-rotating", "document-life", Live);

/// The part that each plays in its claims, beside those that have it by their names in the lab.
const PARTS: [(&str, &str); 1] = [("stackless-head", COROUTINES_ALONE)];

/// The interval of the study's timer, in units of the timebase; and
/// in instructions, of which there are a hundred to one.
const TICK: u64 = 5000;
const INSTRUCTIONS_OF_A_TICK: f64 = TICK as f64 * 100.0;

/// Of the chapter: turns of each task, of how many the sizes are
/// tried, and with how few turns the greatest.
const CHAPTERS_TURNS: u32 = 1000;
const SIZES: [u32; 4] = [10, 100, 384, 1000];
const GREAT_SIZES: [u32; 2] = [10_000, 100_000];
const TURNS_OF_GREAT_SIZES: u32 = 10;

/// What the lab does under Linux beside it. Two generations, of which
/// one is counted, for another begins as one ends.
const LINUX: &str = "tasks call stackless stackful thread-yield thread-futex process-yield \
    process-futex process-pipe life-future life-thread life-fork life-vfork life-fork-exec -n \
    10,100 -y 100 --blocks 1 --count 2 --quiet";

/// What Linux's kinds of task are called beside Squall's: this before their names.
const LINUXES: &str = "linux-";

/// Repetitions of which the study took means.
const REPETITIONS: usize = 10;

/// What Squall says of a variant.
#[derive(Debug, Deserialize)]
struct Said {
    subject: String,
    tasks: u32,
    turns: u32,
    done: u64,
    instructions: u64,
    timer_interrupts: u64,
    space_changes: u64,
    flushes: u64,
    bytes: u64,
    moves: u64,
    frames_free: u64,
}

/// What `tasks` can be told under Linux, and not here.
const LINUX_ONLY: [&str; 12] = [
    "series",
    "working_set",
    "placement",
    "cpus",
    "count",
    "time",
    "load",
    "blocks",
    "seed",
    "plan",
    "save_plan",
    "dry_run",
];

/// One start of the machine: the words for Squall's first program,
/// and whether they are the study's.
struct Boot {
    words: String,
    study: bool,
}

/// What is to be run, in the order of a plan.
fn boots(tasks: &ArgMatches, chapter: bool) -> anyhow::Result<Vec<Boot>> {
    let given = |name: &&str| tasks.value_source(name) == Some(ValueSource::CommandLine);
    if let Some(name) = LINUX_ONLY.into_iter().find(given) {
        let flag = name.replace('_', "-");
        return refuse(format!(
            "Squall takes no --{flag}: it runs on one hart, once, and the same way every time"
        ));
    }
    if let Some(name) = ["kinds", "tasks", "yields", "document"].into_iter().find(given).filter(|_| chapter) {
        return refuse(format!("--chapter runs all that the chapter shows, and takes no {name}"));
    }
    let document = tasks.get_flag("document");
    let mut boots = Vec::new();
    if document || chapter {
        boots.push(Boot { words: document_words(), study: true });
    }
    if !document {
        let words = if chapter { chapters_words() } else { words(tasks)? };
        boots.push(Boot { words, study: false });
    }
    Ok(boots)
}

/// The kinds of task that are asked for, with their numbers.
fn words(tasks: &ArgMatches) -> anyhow::Result<String> {
    let or = |given: Vec<u32>, default: &[u32]| if given.is_empty() { default.to_vec() } else { given };
    let counts: Vec<Numbers> = tasks.get_many("tasks").into_iter().flatten().cloned().collect();
    let counts = or(Numbers::of(&counts), &USUAL_TASKS);
    let turns = or(tasks.get_many("yields").into_iter().flatten().copied().collect(), &[100]);
    let asked: Vec<&String> = tasks.get_many("kinds").into_iter().flatten().collect();
    for name in &asked {
        if *name != "all" && !KINDS.iter().any(|kind| kind.lab == *name) {
            let known: Vec<_> = KINDS.iter().map(|kind| kind.lab).collect();
            return Err(
                Usage(format!("Squall has no kind of task {name}; it has {}", known.join(", "))).into()
            );
        }
    }
    let wanted =
        |kind: &&Kind| asked.is_empty() || asked.iter().any(|name| *name == "all" || *name == kind.lab);
    let mut words = Vec::new();
    for kind in KINDS.iter().filter(wanted) {
        let named = asked.iter().any(|name| *name == kind.lab);
        for count in &counts {
            let (spaces, fitting) = (kind.spaces(), kind.fitting(*count));
            if named && fitting != *count {
                let reason = format!(
                    "{} has as many tasks in each of {spaces} address spaces; {count} cannot be divided so",
                    kind.lab
                );
                return Err(Usage(refused(reason, &[format!("-n {fitting}")])).into());
            }
            let turns = if kind.does == Live { &[0][..] } else { &turns };
            words.extend(turns.iter().flat_map(|turns| kind.words(fitting, *turns)));
        }
    }
    Ok(words.join(" "))
}

impl Kind {
    fn spaces(&self) -> u32 {
        if let Cross(spaces) = self.does { spaces } else { 1 }
    }

    /// `tasks`, or as many below that as there can be the same number of in each address space.
    fn fitting(&self, tasks: u32) -> u32 {
        (tasks / self.spaces()).max(1) * self.spaces()
    }

    /// The words that run it, where address spaces change once with
    /// their translations kept and once without.
    fn words(&self, tasks: u32, turns: u32) -> Vec<String> {
        let word = format!("{}:{tasks}:{turns}", self.squall);
        match self.does {
            HandOver | Live => vec![word],
            Cross(_) | Process => vec![word.clone(), "flush".into(), word, "keep".into()],
        }
    }
}

/// Every kind with a hundred tasks, and some with ten to as many as there may be.
fn chapters_words() -> String {
    let hundreds = KINDS.iter().flat_map(|kind| kind.words(kind.fitting(100), CHAPTERS_TURNS));
    let mut words: Vec<String> = hundreds.collect();
    for name in ["stackful", "future", "stackful-across", "process"] {
        words.extend(SIZES.iter().map(|tasks| format!("{name}:{tasks}:{CHAPTERS_TURNS}")));
        let most = if name == "process" { 1 } else { 2 };
        let great = GREAT_SIZES[..most].iter();
        words.extend(great.map(|tasks| format!("{name}:{tasks}:{TURNS_OF_GREAT_SIZES}")));
    }
    words.join(" ")
}

fn document_words() -> String {
    let mut words: Vec<String> = Vec::new();
    for tasks in SWITCHING {
        words.push(format!("call:{tasks}:1"));
        words.extend(STUDY[..2].iter().map(|kind| format!("{}:{tasks}", kind.squall)));
        // Its kernel forgot the translations whenever the address space changed.
        words.push("flush".into());
        words.extend(STUDY[2..].iter().map(|kind| format!("{}:{tasks}", kind.squall)));
        words.push("keep".into());
    }
    for tasks in BOARD.iter().chain(&MAKING) {
        words.extend([format!("life-future:{tasks}"), format!("fork-copy:{tasks}")]);
    }
    let lives = BOARD.iter().chain(&MAKING);
    words.extend(lives.map(|tasks| format!("{}:{tasks}", STUDY_LIVES.squall)));
    words.push(format!("tick:{TICK}"));
    words
        .extend(SWITCHING.iter().flat_map(|tasks| vec![format!("{}:{tasks}", STUDY[0].squall); REPETITIONS]));
    words.join(" ")
}

/// Boots Squall, and with `chapter` Linux on the same machine after it, and makes a result of what
/// they say. `tell` hears what is begun.
pub(super) fn run(
    tasks: &ArgMatches,
    chapter: bool,
    kernel: Option<&Path>,
    machine: Machine,
    limit: Duration,
    tell: impl Fn(&str),
) -> anyhow::Result<ResultFile> {
    let boots = boots(tasks, chapter)?;
    let built: PathBuf = kernel.map_or_else(squall::build, |kernel| Ok(kernel.to_owned()))?;
    let emulator = squall::emulator()?;
    let begun = SystemTime::now();
    let mut records = Vec::new();
    for Boot { words, study } in &boots {
        tell(if *study { "Squall: the study's experiments" } else { "Squall: its kinds of task" });
        let text = squall::run(&emulator, &built, words, MEMORY_MIB, limit)?;
        let said = text.lines().filter(|line| line.starts_with("{\"subject\""));
        let said =
            said.map(serde_json::from_str).collect::<Result<Vec<Said>, _>>().context("what Squall said")?;
        let ticking = if *study { SWITCHING.len() * REPETITIONS } else { 0 };
        let (timed, ticked) = said.split_at(said.len() - ticking);
        records.extend(timed.iter().map(record));
        records.extend(ticked.chunks(REPETITIONS).filter_map(|runs| ticks(runs, timed)));
    }
    let mut machine = emulated(machine, emulator.version);
    let mut warnings = Vec::new();
    if chapter {
        tell("Linux on the same machine: built");
        squall::build_linux()?;
        tell("Linux on the same machine: its kinds of task");
        let bytes = squall::run_linux(LINUX, limit)?;
        let linux = doorbell_results::record::read::read_bytes(bytes, "the result from Linux")?;
        if let Some(release) = linux.machine.kernel.release {
            machine.kernel.release = Some(format!("Squall; {LINUXES}…: Linux {release}"));
        }
        warnings.extend(linux.warnings);
        records.extend(linux.records.into_iter().map(beside));
    }
    let records = each_once(records)?;
    let configurations: Vec<Configuration> =
        records.iter().map(|record| record.configuration.clone()).collect();
    let measured =
        |subject: &str| configurations.iter().any(|configuration| configuration.subject == subject);
    let parts = super::tasks::parts().chain(PARTS).filter(|(subject, _)| measured(subject));
    let mut parts: BTreeMap<String, String> =
        parts.map(|(subject, part)| (subject.to_owned(), part.to_owned())).collect();
    let linux = parts.iter().filter(|(_, part)| *part == CONTROL);
    let linux: Vec<_> = linux.map(|(subject, part)| (format!("{LINUXES}{subject}"), part.clone())).collect();
    parts.extend(linux.into_iter().filter(|(subject, _)| measured(subject)));
    let plan = Plan {
        sections: vec!["tasks".to_owned()],
        parts,
        claims: Some(SOURCE.name.to_owned()),
        repeat_on_interference: false,
        ..Plan::new("tasks", configurations, 1, 0)
    };
    let name = tasks.get_one::<String>("name").cloned().unwrap_or_else(|| "squall".to_owned());
    Ok(ResultFile { name: Some(name), warnings, ..ended_now(plan, machine, begun, records) })
}

/// The first record of each configuration. Whatever was run twice must have given the same counts.
fn each_once(records: Vec<Record>) -> anyhow::Result<Vec<Record>> {
    let mut kept: Vec<Record> = Vec::new();
    for record in records {
        let Some(first) = kept.iter().find(|kept| kept.configuration == record.configuration) else {
            kept.push(record);
            continue;
        };
        for figure in record.figures.iter().filter(|figure| REPEATED.contains(&figure.name.as_str())) {
            let before = first.figures.iter().find(|before| before.name == figure.name);
            anyhow::ensure!(
                before.is_some_and(|before| before.formula == figure.formula),
                "{} with {:?} was run twice, and the second time its {} are {} and not {}: no \
                 count of this run can be relied on",
                record.configuration.subject,
                record.configuration.pattern,
                figure.name,
                figure.formula,
                before.map_or("none", |before| &before.formula),
            );
        }
    }
    Ok(kept)
}

/// A record of Linux's, under a name that says so, with its count as Squall's have it.
fn beside(mut record: Record) -> Record {
    record.configuration.subject = format!("{LINUXES}{}", record.configuration.subject);
    let headline =
        [Quantity::HandOff, Quantity::Life].iter().find_map(|quantity| record.series.get(quantity));
    if let Some(series) = headline {
        let formula = "median; a nanosecond of the machine's clock is an instruction";
        record.figures.push(figure(RETIRED, series.p50_ns, "count", formula));
    }
    record
}

/// The figures that are the same whenever the same is run; how much
/// memory was free hangs on what ran before.
const REPEATED: [&str; 3] = [RETIRED, SWITCHES_PER_HANDOFF, MOVES_PER_TASK];

/// Figure: instructions, of the task, the kernel and the firmware together.
const RETIRED: &str = "retired instructions";

/// Memory of the machine: a hundred thousand stacks, and room.
const MEMORY_MIB: u32 = 1024;

/// The machine that Squall ran on; only what is true of it.
fn emulated(host: Machine, emulator: String) -> Machine {
    let mut machine = host;
    let vm = Vm {
        accelerator: "tcg".to_owned(),
        emulator,
        nested: machine.virtualisation.guest,
        emulated: true,
        host: machine.processor.model_name.take(),
        deterministic: true,
    };
    machine.virtualisation = Virtualisation {
        guest: true,
        hypervisor: Some(TRANSLATOR.to_owned()),
        product: Some("QEMU virt, one RISC-V hart".to_owned()),
        firmware: None,
        emulated: true,
        vm: Some(vm),
        container: None,
    };
    machine.processor = Default::default();
    machine.kernel = Default::default();
    machine.kernel.release = Some("Squall".to_owned());
    machine.findings.clear();
    machine
}

fn figure(name: &str, value: f64, unit: &str, formula: impl Into<String>) -> Figure {
    Figure { name: name.to_owned(), value, unit: unit.to_owned(), formula: formula.into() }
}

fn configuration(subject: &str, tasks: u32, yields: u32) -> Configuration {
    Configuration {
        contexts: Contexts::Threads,
        placement: Placement { relation: "same-core".to_owned(), cpus: Some([0, 0]) },
        ..Configuration::new(subject, Pattern::Tasks { tasks, yields }, Until::count(1))
    }
}

fn record(said: &Said) -> Record {
    let (bare, flushed) = match said.subject.strip_suffix("-flush") {
        Some(bare) => (bare, true),
        None => (said.subject.as_str(), false),
    };
    let study = STUDY.iter().find(|kind| kind.squall == bare);
    let known = KINDS.iter().chain(&STUDY).chain([&STUDY_LIVES]).find(|kind| kind.squall == bare);
    let name = known.map_or(bare, |kind| kind.lab);
    // The study's kernel always forgets.
    let subject = if flushed && study.is_none() { format!("{name}-flush") } else { name.to_owned() };
    let (yields, quantity) = match study {
        Some(_) => (1, Quantity::HandOff),
        None if said.turns == 0 => (0, Quantity::Life),
        None => (said.turns, Quantity::HandOff),
    };
    let mut histogram = Histogram::new();
    let each = said.instructions as f64 / said.done as f64;
    histogram.record((each * 1000.0) as u64);
    let done = said.done as f64;
    let mut figures = vec![
        figure(RETIRED, each, "count", format!("{} / {}", said.instructions, said.done)),
        figure(
            SWITCHES_PER_HANDOFF,
            said.space_changes as f64 / done,
            "count",
            format!("{} changes of address space / {}", said.space_changes, said.done),
        ),
        figure("flushes of translations", said.flushes as f64, "count", "as the kernel counted"),
    ];
    if said.bytes > 0 {
        // Lives are over when what is free is counted; other tasks stand there.
        let stand = if yields == 0 { 0 } else { said.tasks };
        let fit = said.frames_free as f64 * 4096.0 / said.bytes as f64 + f64::from(stand);
        figures.push(figure(TASK_BYTES, said.bytes as f64, "B", "frames that the tasks took / tasks"));
        figures.push(figure(CEILING, fit.floor(), "tasks", format!("in {MEMORY_MIB} MiB")));
    }
    if said.moves > 0 {
        figures.push(figure(
            MOVES_PER_TASK,
            said.moves as f64 / done,
            "moves",
            format!("{} / {}", said.moves, said.done),
        ));
    }
    Record {
        subject: Subject::Tasks {
            made_of: if said.space_changes > 0 { MadeOf::Processes } else { MadeOf::Code },
            measured: if yields == 0 { Measured::Lives } else { Measured::HandOffs },
            // No kernel counts switches of Linux here, so none can be missing.
            sleeps: false,
        },
        series: BTreeMap::from([(quantity, Series::from(&histogram))]),
        figures,
        tally: Tally { sent: said.done, seen: said.done, ..Tally::default() },
        environment: Environment { wall_ns: said.instructions, ..Environment::default() },
        ..bare_record(&configuration(&subject, said.tasks, yields), 0, Outcome::Done)
    }
}

/// The study's way of measuring, beside the count of instructions: so
/// many runs, each with its timer's interrupts.
fn ticks(runs: &[Said], timed: &[Said]) -> Option<Record> {
    let first = runs.first()?;
    let same = |said: &&Said| (&said.subject, said.tasks) == (&first.subject, first.tasks);
    let mut record = record(timed.iter().find(same)?);
    record.configuration.subject = "timer-ticks".to_owned();
    let counted = runs.iter().map(|said| said.timer_interrupts).sum::<u64>();
    let mean = counted as f64 / runs.len() as f64;
    let true_ticks = timed.iter().find(same)?.instructions as f64 / INSTRUCTIONS_OF_A_TICK;
    record.figures = vec![
        figure(timer_ticks::TICKS, mean, "ticks", format!("{counted} ticks / {} runs", runs.len())),
        figure(timer_ticks::RUNS, runs.len() as f64, "runs", "one after the other"),
        figure(timer_ticks::STEP, 100.0 / true_ticks, "%", format!("one tick of {true_ticks:.2}")),
        figure(timer_ticks::WORST, (mean / true_ticks - 1.0).abs() * 100.0, "%", "beside the instructions"),
    ];
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(subject: &str, instructions: u64, space_changes: u64, frames_free: u64) -> Record {
        record(&Said {
            subject: subject.to_owned(),
            tasks: 10,
            turns: 10,
            done: 100,
            instructions,
            timer_interrupts: 0,
            space_changes,
            flushes: 0,
            bytes: 4096,
            moves: 0,
            frames_free,
        })
    }

    fn asked(words: &str) -> anyhow::Result<String> {
        let command = <super::super::tasks::Args as clap::Args>::augment_args(clap::Command::new("tasks"));
        super::words(&command.try_get_matches_from(words.split(' ')).unwrap())
    }

    /// "10 cannot be divided", of the command that its page and its help show.
    #[test]
    fn every_number_of_tasks_fits_every_kind_that_was_not_named() {
        for words in ["tasks", "tasks -n 9", "tasks -n 2", "tasks -n 100", "tasks all -n 7"] {
            let run = asked(words).unwrap();
            assert!(run.contains("stackful-across-3-spaces:"), "{words}: {run}");
        }
        assert!(asked("tasks").unwrap().contains("stackful-across-3-spaces:1200:"), "the usual ones fit all");
        let refused = asked("tasks stackful-across-3-spaces -n 10").unwrap_err().to_string();
        assert!(refused.ends_with("10 cannot be divided so; write for example -n 9"), "{refused}");
    }

    #[test]
    fn what_ran_twice_is_kept_once_if_it_counted_the_same() {
        let records =
            vec![said("stackful", 2800, 0, 5), said("process", 23_300, 100, 5), said("stackful", 2800, 0, 4)];
        let subjects: Vec<String> =
            each_once(records).unwrap().into_iter().map(|record| record.configuration.subject).collect();
        assert_eq!(subjects, ["stackful", "process-yield"]);
    }

    #[test]
    fn what_ran_twice_and_counted_one_instruction_more_is_no_result() {
        let complaint = each_once(vec![said("stackful", 2800, 0, 5), said("stackful", 2801, 0, 5)])
            .unwrap_err()
            .to_string();
        assert!(complaint.contains("are 2801 / 100 and not 2800 / 100"), "{complaint}");
        assert!(each_once(vec![said("process", 23_300, 100, 5), said("process", 23_300, 99, 5)]).is_err());
    }
}

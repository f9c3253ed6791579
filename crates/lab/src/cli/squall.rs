// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell vm run --guest squall -- tasks`: the tasks of Squall (`squall/`), as a result file.
//!
//! Squall prints a line of JSON for each variant. Its clock is the instructions it retires, one to a nanosecond, so a figure of n
//! nanoseconds is n instructions, the same in every run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::ArgMatches;
use doorbell_results::figure::task::{CEILING, MOVES_PER_TASK, SWITCHES_PER_HANDOFF, TASK_BYTES};
use doorbell_results::figure::timer_ticks;
use doorbell_vm::squall;
use serde::Deserialize;

use super::common::command_line;
use super::usage::Usage;
use doorbell_results::configuration::{
    Configuration, Pattern, Placement, Scheduler, Timing, Until, WaitPolicy,
};
use doorbell_results::machine::Machine;
use doorbell_results::machine::virtualisation::{TRANSLATOR, Virtualisation, Vm};
use doorbell_results::plan::Plan;
use doorbell_results::record::result::SCHEMA_VERSION;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{MadeOf, Measured, Subject};
use doorbell_results::record::{Environment, Figure, Histogram, Outcome, Record, ResultFile, Series, Tally};
use doorbell_subjects::mechanism::Contexts;
use doorbell_verdict::claims::coroutines::{BOARD, MAKING, SOURCE, SWITCHING};

/// A kind of task: its name in the lab, and Squall's. Kinds with the same name in the lab differ in what surrounds them.
struct Kind {
    lab: &'static str,
    squall: &'static str,
    /// Whether its tasks are made, run once and gone.
    life: bool,
}

const fn kind(lab: &'static str, squall: &'static str) -> Kind {
    Kind { lab, squall, life: false }
}

const fn life(lab: &'static str, squall: &'static str) -> Kind {
    Kind { lab, squall, life: true }
}

/// All kinds that can be asked for.
const KINDS: &[Kind] = &[
    kind("call", "call"),
    kind("stackless", "future"),
    kind("stackful", "stackful"),
    kind("kernel-task", "kernel-task"),
    kind("stackless-across", "future-across"),
    kind("stackful-across", "stackful-across"),
    kind("process-yield", "process"),
    kind("process-yield-kernel-stack", "process-kernel-stack"),
    life("life-future", "life-future"),
    life("life-fork", "fork-copy"),
    life("life-fork-cow", "fork-copy-on-write"),
    life("life-fork-kernel-stack", "fork-copy-kernel-stack"),
];

/// The study's own experiments, under the names by which its claims look for them.
const STUDY: &[Kind] = &[
    kind("stackless-rotating", "document-coroutine"),
    kind("stackless", "document-coroutine-head"),
    kind("process-pair-rotating", "document-process"),
    kind("process-pair", "document-process-head"),
];

/// The interval of the study's timer, in units of the timebase; and in instructions, of which there are a hundred to one.
const TICK: u64 = 5000;
const INSTRUCTIONS_OF_A_TICK: f64 = TICK as f64 * 100.0;

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

/// What is to be run: the words for Squall's first program, in the order of a plan.
pub(super) fn words(tasks: &ArgMatches) -> anyhow::Result<String> {
    let document = tasks.get_flag("document");
    let numbers = |name: &str, default: &[u32]| -> Vec<u32> {
        let given: Vec<u32> = tasks.get_many(name).into_iter().flatten().copied().collect();
        if given.is_empty() { default.to_vec() } else { given }
    };
    if document {
        return Ok(document_words());
    }
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
    let (counts, turns) = (numbers("tasks", &[10, 1000]), numbers("yields", &[100]));
    let mut words = Vec::new();
    for kind in KINDS.iter().filter(wanted) {
        for count in &counts {
            if kind.life {
                words.push(format!("{}:{count}", kind.squall));
                continue;
            }
            for turns in &turns {
                let word = format!("{}:{count}:{turns}", kind.squall);
                if kind.squall.ends_with("-across") && count % 2 != 0 {
                    return Err(Usage(format!(
                        "{} has half of its tasks on each side; {count} is odd",
                        kind.lab
                    ))
                    .into());
                }
                // Where address spaces change, once with their translations kept and once without.
                if kind.squall.ends_with("-across") || kind.squall.starts_with("process") {
                    words.extend([word.clone(), "flush".into(), word, "keep".into()]);
                } else {
                    words.push(word);
                }
            }
        }
    }
    Ok(words.join(" "))
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
    words.push(format!("tick:{TICK}"));
    words
        .extend(SWITCHING.iter().flat_map(|tasks| vec![format!("{}:{tasks}", STUDY[0].squall); REPETITIONS]));
    words.join(" ")
}

/// Boots Squall and makes a result of what it says.
pub(super) fn run(
    tasks: &ArgMatches,
    kernel: Option<&Path>,
    machine: Machine,
    limit: Duration,
) -> anyhow::Result<ResultFile> {
    let words = words(tasks)?;
    let built: PathBuf = kernel.map_or_else(squall::build, |kernel| Ok(kernel.to_owned()))?;
    let emulator = squall::emulator()?;
    let begin = now();
    let text = squall::run(&built, &words, MEMORY_MIB, limit)?;
    let said = text.lines().filter(|line| line.starts_with("{\"subject\""));
    let said =
        said.map(serde_json::from_str).collect::<Result<Vec<Said>, _>>().context("what Squall said")?;
    let document = tasks.get_flag("document");
    let (timed, ticked) =
        said.split_at(said.len() - if document { SWITCHING.len() * REPETITIONS } else { 0 });
    let mut records: Vec<Record> = timed.iter().map(|said| record(said, document)).collect();
    records.extend(ticked.chunks(REPETITIONS).filter_map(|runs| ticks(runs, timed)));
    let mut configurations: Vec<Configuration> = Vec::new();
    records.retain(|record| {
        let new = !configurations.contains(&record.configuration);
        if new {
            configurations.push(record.configuration.clone());
        }
        new
    });
    let measured =
        |subject: &str| configurations.iter().any(|configuration| configuration.subject == subject);
    let parts = super::tasks::parts().filter(|(subject, _)| measured(subject));
    let parts = parts.map(|(subject, part)| (subject.to_owned(), part.to_owned())).collect();
    Ok(ResultFile {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line(),
        name: Some("squall".to_owned()),
        started_at_unix_ns: begin,
        finished_at_unix_ns: now(),
        partial: false,
        machine: emulated(machine, emulator),
        plan: Plan {
            sections: vec!["tasks".to_owned()],
            parts,
            claims: Some(SOURCE.name.to_owned()),
            repeat_on_interference: false,
            ..Plan::new("tasks", configurations, 1, 0)
        },
        primitives: Vec::new(),
        records,
        warnings: Vec::new(),
    })
}

/// Memory of the machine: a hundred thousand stacks, and room.
const MEMORY_MIB: u32 = 1024;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

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

fn configuration(subject: &str, tasks: u32, yields: u32) -> Configuration {
    Configuration {
        subject: subject.to_owned(),
        contexts: Contexts::Threads,
        pattern: Pattern::Tasks { tasks, yields },
        timing: Timing::Around,
        wait: WaitPolicy::Block,
        placement: Placement { relation: "same-core".to_owned(), cpus: Some([0, 0]) },
        size: 0,
        until: Until::count(1),
        scheduler: Scheduler::Other,
        injected_slowdown_ppm: None,
        without_reference: false,
        load: None,
        trace: None,
        target: None,
        latency_limit_us: None,
    }
}

fn record(said: &Said, document: bool) -> Record {
    let (bare, flushed) = match said.subject.strip_suffix("-flush") {
        Some(bare) => (bare, true),
        None => (said.subject.as_str(), false),
    };
    let study = STUDY.iter().find(|kind| kind.squall == bare);
    let name = study.or_else(|| KINDS.iter().find(|kind| kind.squall == bare)).map_or(bare, |kind| kind.lab);
    let subject = if flushed && !document { format!("{name}-flush") } else { name.to_owned() };
    let (yields, quantity) = match study {
        Some(_) => (1, Quantity::HandOff),
        None if said.turns == 0 => (0, Quantity::Life),
        None => (said.turns, Quantity::HandOff),
    };
    let mut histogram = Histogram::new();
    let each = said.instructions as f64 / said.done as f64;
    histogram.record((each * 1000.0) as u64);
    let figure = |name: &str, value: f64, unit: &str, formula: String| Figure {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        formula,
    };
    let done = said.done as f64;
    let mut figures = vec![
        figure("retired instructions", each, "count", format!("{} / {}", said.instructions, said.done)),
        figure(
            SWITCHES_PER_HANDOFF,
            said.space_changes as f64 / done,
            "count",
            format!("{} changes of address space / {}", said.space_changes, said.done),
        ),
        figure("flushes of translations", said.flushes as f64, "count", "as the kernel counted".to_owned()),
    ];
    if said.bytes > 0 {
        let fit = said.frames_free as f64 * 4096.0 / said.bytes as f64 + f64::from(said.tasks);
        figures.push(figure(
            TASK_BYTES,
            said.bytes as f64,
            "B",
            "frames that the tasks took / tasks".to_owned(),
        ));
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
        configuration: configuration(&subject, said.tasks, yields),
        subject: Subject::Tasks {
            made_of: if said.space_changes > 0 { MadeOf::Processes } else { MadeOf::Code },
            measured: if yields == 0 { Measured::Lives } else { Measured::HandOffs },
            // No kernel counts switches of Linux here, so none can be missing.
            sleeps: false,
        },
        block: 0,
        attempts: 1,
        outcome: Outcome::Done,
        series: BTreeMap::from([(quantity, Series::from(&histogram))]),
        figures,
        reference: None,
        fanout: None,
        io: None,
        tally: Tally { sent: said.done, seen: said.done, ..Tally::default() },
        sides: Vec::new(),
        load: None,
        anatomy: None,
        environment: Environment { wall_ns: said.instructions, ..Environment::default() },
        warnings: Vec::new(),
    }
}

/// The study's way of measuring, beside the count of instructions: so many runs, each with its timer's interrupts.
fn ticks(runs: &[Said], timed: &[Said]) -> Option<Record> {
    let first = runs.first()?;
    let same = |said: &&Said| (&said.subject, said.tasks) == (&first.subject, first.tasks);
    let mut record = record(timed.iter().find(same)?, true);
    record.configuration.subject = "timer-ticks".to_owned();
    let counted = runs.iter().map(|said| said.timer_interrupts).sum::<u64>();
    let mean = counted as f64 / runs.len() as f64;
    let true_ticks = timed.iter().find(same)?.instructions as f64 / INSTRUCTIONS_OF_A_TICK;
    let figure = |name: &str, value: f64, unit: &str, formula: String| Figure {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        formula,
    };
    record.figures = vec![
        figure(timer_ticks::TICKS, mean, "ticks", format!("{counted} ticks / {} runs", runs.len())),
        figure(timer_ticks::STEP, 100.0 / true_ticks, "%", format!("one tick of {true_ticks:.2}")),
        figure(
            timer_ticks::WORST,
            (mean / true_ticks - 1.0).abs() * 100.0,
            "%",
            "beside the instructions".to_owned(),
        ),
    ];
    Some(record)
}

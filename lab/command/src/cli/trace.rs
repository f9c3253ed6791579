// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace`.

pub mod costs;
pub mod export;
pub mod outside;
pub mod show;
pub mod stacks;
pub mod starter;
pub mod verify;
pub mod whatif;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::common::{Delivery, Exit, Terminal, ended_now, machine_here, unix_ns};
use super::out::aside;
use super::signals;
use super::usage::{Usage, refuse};
use crate::run::subject::record;
use doorbell_harness::trace::program::{RecordError, Recorded, Recorder, took};
use doorbell_report::program::WAKE_GRAPH;
use doorbell_report::screen;
use doorbell_results::anatomy::Anatomy;
use doorbell_results::anatomy::program::{Engine, Program};
use doorbell_results::configuration::{Configuration, Pattern, Until};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{percent, refused, span};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Environment, Outcome, Record, ResultFile, Subject, Tally};
use starter::Starter;

/// How long a program that runs already is recorded, unless told otherwise.
const WINDOW: Duration = Duration::from_secs(10);

/// Arguments of `doorbell trace`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "EXAMPLES\n  \
    doorbell trace -- ./server --threads 4        record a command until it ends\n  \
    doorbell trace --time 5s -- ./server          or for five seconds; the command goes on\n  \
    doorbell trace -p 4711 --time 10s             record a program that runs already\n  \
    doorbell trace -p 4711 --time 60s --duty 10%  or a tenth of the time, to cost it less\n  \
    doorbell trace --stacks 1/64 -- ./server      also on which stacks it sleeps, and is woken from\n  \
    doorbell trace -p 4711,4712 --children -o t.json     two, and the processes that they start\n  \
    doorbell trace show t.json --edge A                  why are the slowest wake-ups of the first edge slow?
  \
    doorbell trace whatif t.json --edge A spin=18us      what would spinning change at the first edge?\n  \
    doorbell trace whatif t.json --edge A pin=0,0        and one CPU for both threads?\n  \
    doorbell trace whatif t.json --edge A pin=0,0 --verify -- ./server    and does it come true?\n\n\
    Needs root, or CAP_BPF with CAP_PERFMON, or a tracefs this user may write; `--engine own` needs none of them. The program\n  \
    is left alone: nobody attaches to it. Exit status 4 where the engine cannot be had."
)]
pub struct Args {
    #[command(subcommand)]
    step: Option<Step>,
    /// Record these processes, which run already, with the threads
    /// they have and make; comma separated
    #[arg(
        long,
        short,
        value_name = "PID",
        value_delimiter = ',',
        num_args = 1..,
        conflicts_with = "command",
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pid: Vec<i32>,
    /// Record the processes too that the program starts
    #[arg(long)]
    children: bool,
    /// How long [default: 10s of a program that runs already, a command until it ends]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    /// Record this share of the time only, in slices of a fifth of a second at the most; by bpf
    #[arg(long, value_parser = duty, value_name = "SHARE")]
    duty: Option<f64>,
    /// Record also on which stacks they sleep and from which they are woken, of one wake-up in so
    /// many, by chance; by bpf
    #[arg(long, value_parser = stacks::one_in, value_name = "1/N")]
    stacks: Option<NonZero<u32>>,
    /// What records: a program in the kernel (bpf); the kernel's
    /// trace events (tracefs), which cost the program more and also
    /// show its other system calls; or what every user is told of
    /// their own processes (own): sleeps, and not who ends them
    /// [default: bpf where it can be had, else tracefs]
    #[arg(long, value_name = "ENGINE", value_parser = engine(&ENGINES))]
    engine: Option<Engine>,
    #[command(flatten)]
    delivery: Delivery,
    /// The command to start and record
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Subcommand)]
enum Step {
    /// Say what spinning, pinning, another mechanism or batches would
    /// change at an edge of a recorded program
    Whatif(whatif::Args),
    /// Show the slowest wake-ups of an edge of a recorded program,
    /// each with its stages and its cause
    Show(show::Args),
    /// Write a recorded program for a flame graph, or for Perfetto
    Export(export::Args),
}

/// `10%`, as a share.
fn duty(text: &str) -> Result<f64, String> {
    match percent(text)? {
        ppm @ 1..1_000_000 => Ok(f64::from(ppm) / 1e6),
        1_000_000 => Err("all of the time is recorded without --duty".to_owned()),
        _ => Err(refused(format_args!("'{text}' is no share of the time"), &["10%", "0.5%"])),
    }
}

/// The engines that there are, of which `--verify` has use for the first two.
const ENGINES: [&str; 3] = ["bpf", "tracefs", "own"];

fn engine(names: &'static [&'static str]) -> impl clap::builder::TypedValueParser<Value = Engine> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    let engine = |name: String| match name.as_str() {
        "bpf" => Engine::Bpf,
        "own" => Engine::Own,
        _ => Engine::Tracefs,
    };
    PossibleValuesParser::new(names).map(engine)
}

/// Runs `doorbell trace`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    match &args.step {
        Some(Step::Whatif(args)) => return whatif::run(args, terminal),
        Some(Step::Show(args)) => return show::run(args),
        Some(Step::Export(args)) => return export::run(args),
        None => {}
    }
    if args.command.is_empty() && args.pid.is_empty() {
        let message =
            "name what is recorded: `doorbell trace -- COMMAND`, or `doorbell trace -p 4711` by its number";
        return refuse(message);
    }
    args.delivery.writable()?;
    let stop = signals::listen()?;
    let stop = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let begun = SystemTime::now();
    let machine = machine_here();
    // Before the mounts of this thread become its own where tracefs has to be mounted: the command is
    // to have those of its user.
    let starter = if args.command.is_empty() { None } else { Some(Starter::new()?) };
    let recorded = match recorded(&args, &machine, starter, stop) {
        Err(Failure::Record(RecordError::NoProcess(pid))) => {
            return Err(Usage(RecordError::NoProcess(pid).to_string()).into());
        }
        Err(Failure::Record(error)) => {
            aside!("doorbell: {error}");
            return Ok(Exit::Unfit);
        }
        Err(Failure::Asked(error)) => return Err(error),
        Err(Failure::Start { command, cause }) => {
            return refuse(format!("cannot start '{command}': {cause}"));
        }
        Ok(recorded) => recorded,
    };
    let mut recorded = recorded;
    if let Some(program) = &mut recorded.anatomy.program {
        program.machine_costs = costs::kept(&machine);
    }
    let result = result(&args, machine, begun, recorded.anatomy);
    args.delivery.deliver(&result, terminal)
}

/// Why nothing was recorded.
#[derive(Debug)]
enum Failure {
    Record(RecordError),
    Start {
        command: String,
        cause: std::io::Error,
    },
    /// What was asked for makes no sense, or is not in this build.
    Asked(anyhow::Error),
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

fn recorded(
    args: &Args,
    machine: &Machine,
    starter: Option<Starter>,
    stop: impl Fn() -> bool,
) -> Result<Recorded, Failure> {
    let mut recorder = match args.stacks {
        Some(one_in) => stacks::recorder(one_in, args.engine, args.children)?,
        None => Recorder::new(args.engine, machine.clock, &machine.topology.online, args.children)?,
    };
    if let Some(why) = recorder.not_bpf() {
        aside!("doorbell: recording by trace events, which cost the program more: {why}");
    }
    let time = if starter.is_none() { Some(args.time.unwrap_or(WINDOW)) } else { args.time };
    if let Some(share) = args.duty {
        recorder.in_slices(share, time)?;
    }
    let Some(starter) = starter else {
        let first = recorder.follow(&args.pid)?;
        recorder.start()?;
        let gone = || args.pid.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        let named = args.pid.first().and_then(|pid| doorbell_files::kernel(format!("/proc/{pid}/comm")).ok());
        let mut recorded = recorder.record(&first, time, gone, stop)?;
        name(&mut recorded.anatomy, named.unwrap_or_default().trim_end(), args.pid.len());
        return Ok(recorded);
    };
    recorder.follow_children_of(starter.task())?;
    recorder.start()?;
    let shown = args.command[0].to_string_lossy().into_owned();
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let start = starter.start(command);
    let mut child = start.map_err(|cause| Failure::Start { command: shown.clone(), cause })?;
    let process = i32::try_from(child.id()).unwrap_or(i32::MAX);
    // What cannot be asked is taken for ended: nobody waits for it.
    let ended = || !matches!(child.try_wait(), Ok(None));
    let mut recorded = recorder.record(&[(process, process)], time, ended, stop)?;
    let file =
        Path::new(&shown).file_name().map_or(shown.clone(), |name| name.to_string_lossy().into_owned());
    name(&mut recorded.anatomy, &file, 1);
    match child.try_wait() {
        Ok(Some(status)) if !status.success() => aside!("doorbell: {shown}: {status}"),
        Ok(None) => aside!("doorbell: {shown} goes on as process {process}; only the recording has ended"),
        _ => {}
    }
    Ok(recorded)
}

fn name(anatomy: &mut Anatomy, name: &str, processes: usize) {
    let others = if processes > 1 { format!(" and {} more", processes - 1) } else { String::new() };
    if let Some(program) = &mut anatomy.program {
        program.name = format!("{name}{others}");
    }
}

/// The result of a run that is one recording.
fn result(args: &Args, machine: Machine, begun: SystemTime, anatomy: Anatomy) -> ResultFile {
    let nothing = Program::default();
    let program = anatomy.program.as_ref().unwrap_or(&nothing);
    let configuration = Configuration::new(
        &program.name,
        // Whoever reads it without knowing of programs sees wake-ups one way, whenever they came.
        Pattern::OneWay { gap_ns: 0 },
        Until::time(Duration::from_nanos(program.recorded_ns)),
    );
    let record = recorded_as(&configuration, 0, &machine, begun, anatomy);
    let plan = Plan {
        sections: vec![WAKE_GRAPH.to_owned()],
        repeat_on_interference: false,
        ..Plan::new("trace", vec![configuration], 1, 0)
    };
    // A signal that ends the recording is the usual way to end it.
    let mut result = ended_now(plan, machine, begun, vec![record]);
    result.name = args.delivery.name.clone();
    result.verdict = Some(screen::verdict(&result));
    result
}

/// What one recording leaves.
fn recorded_as(
    configuration: &Configuration,
    block: u32,
    machine: &Machine,
    begun: SystemTime,
    anatomy: Anatomy,
) -> Record {
    let nothing = Program::default();
    let program = anatomy.program.as_ref().unwrap_or(&nothing);
    let took = took(program);
    let mut series = BTreeMap::new();
    if took.count > 0 {
        series.insert(Quantity::Wake, took);
    }
    Record {
        subject: Subject::Unknown,
        series,
        tally: Tally { sent: program.wakes, seen: program.wakes, ..Tally::default() },
        environment: Environment {
            started_at_unix_ns: unix_ns(begun),
            wall_ns: program.wall_ns(),
            cpus: machine.topology.online.clone(),
            ..Environment::default()
        },
        anatomy: Some(anatomy),
        ..record(configuration, block, Outcome::Done)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of `doorbell`, one file each: its arguments, what they plan, what is asked of the
//! result, and the few lines that call the rooms behind it.
//!
//! Adding a verb is adding a file, its `mod` and its line in `verbs!`. What measures is an
//! [`experiment::Experiment`].

use out::aside;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use doorbell_harness::{host, launch};
use doorbell_report::style::Style;

pub mod anatomy;
mod bounds;
pub mod check;
pub mod claims;
pub mod common;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod exit;
pub mod experiment;
pub mod explain;
pub mod export;
pub mod fanout;
pub mod fleet;
pub mod gate;
pub mod gpu;
pub mod idle;
pub mod io;
pub mod kept;
pub mod list;
pub mod list_services;
pub mod load;
pub mod man;
#[cfg(feature = "model")]
pub mod model;
#[cfg(not(feature = "model"))]
pub mod model {
    //! `doorbell model`, which is not in this build.

    pub use super::not_built::Args;

    pub fn run(args: Args, _: &super::Terminal) -> anyhow::Result<super::Exit> {
        args.refused("doorbell model")
    }
}
pub mod not_built;
pub mod numbers;
pub mod offered;
pub mod out;
pub mod pairs;
pub mod pick;
pub mod ping;
pub mod placements;
pub mod plan_file;
pub mod report;
pub mod schema;
pub mod show;
pub mod sides;
pub mod signals;
pub mod spin;
#[cfg(feature = "machines")]
mod squall;
pub mod survey;
pub mod switch;
pub mod tasks;
pub mod top;
pub mod trace;
pub mod tune;
pub mod uintr;
pub mod usage;
pub mod verdict;
#[cfg(feature = "machines")]
pub mod vm;
#[cfg(not(feature = "machines"))]
pub mod vm {
    //! `doorbell vm`, which is not in this build.

    pub use super::not_built::Args;

    pub fn run(args: Args, _: &super::Terminal) -> anyhow::Result<super::Exit> {
        args.refused("doorbell vm")
    }
}
#[cfg(test)]
mod walk;
pub mod why;

use common::{Exit, Terminal};

/// What a wake-up costs on this machine, by every mechanism Linux has.
///
/// Without a verb it runs the survey: everything useful in 20 s, the answer first.
#[derive(Debug, Parser)]
#[command(name = "doorbell", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = exit::STATUSES)]
pub struct Cli {
    #[command(flatten)]
    terminal: Terminal,
    #[command(flatten)]
    survey: survey::Args,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// The verbs by what they are for, each by its module, whose name is its own: its arguments, and
/// how they are carried out.
macro_rules! verbs {
    ($($group:literal: $($(#[$said:meta])* $verb:ident of $module:ident,)*)*) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        enum Verb {
            $($($(#[$said])* $verb($module::Args),)*)*
        }

        /// The modules of each group's verbs.
        const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$(stringify!($module),)*]),)*];

        impl Verb {
            fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
                match self {
                    $($(Self::$verb(args) => $module::run(args, terminal),)*)*
                }
            }
        }
    };
}

// Every verb, in the groups and the order of `--help`. The one list to extend.
verbs! {
    "Ask, and get an answer":
    /// What a wake-up costs here, by every mechanism; the default
    ///
    /// Measures everything useful in 20 s and says what follows.
    Survey of survey,
    /// Which mechanism serves my pattern and needs?
    ///
    /// The fastest that does, and by how much.
    Pick of pick,
    /// How long to spin before sleeping?
    ///
    /// The knee of latency and CPU time at each gap.
    Spin of spin,
    /// Can this node run it? Pass or fail against a longest wake-up
    ///
    /// With a bound and its confidence.
    Gate of gate,
    /// Did it get worse? A baseline run again, held against limits
    Check of check,
    /// Two results: slower, faster, the same, or inconclusive
    ///
    /// Configuration by configuration.
    Compare of compare,

    "Measure one thing":
    /// Wake a waiter over and over: round trips, or one way with a gap
    Ping of ping,
    /// Every pair of CPUs: the best, the worst, what pinning is worth
    Pairs of pairs,
    /// What calls, faults and context switches cost, by exact counts
    Switch of switch,
    /// One notifier, up to thousands of receivers: first to last
    Fanout of fanout,
    /// Coroutines, threads or processes for N tasks?
    ///
    /// What a hand-off costs, what making and reaping one costs, and how many fit.
    Tasks of tasks,
    /// Poll, hybrid or interrupt for a disk?
    ///
    /// Latency and CPU of each, with the proof that what is called polled was.
    Io of io,
    /// Poll, hybrid or interrupt for a GPU? Launched or resident?
    ///
    /// What a wake-up between CPU and GPU costs by each way, and the core that it burns.
    Gpu of gpu,
    /// What a wake-up costs after a longer sleep, by idle state
    ///
    /// And what holding idle states off buys.
    Idle of idle,
    /// User interrupts beside eventfd, futex and spinning
    Uintr of uintr,

    "Find out why":
    /// Is this machine fit to measure?
    ///
    /// Each finding with what it does to figures and the cure.
    Doctor of doctor,
    /// Where the time of a wake-up goes, by the kernel's own events
    Anatomy of anatomy,
    /// Why was that wake-up slow? The worst ones and their causes
    ///
    /// Each with a waterfall, and its cause where the evidence supports one.
    Why of why,
    /// Your own program: who wakes whom in it, and what that costs
    ///
    /// Its threads, wake edges with their mechanism, herds, time-outs; and what spinning would change.
    Trace of trace,

    "Results":
    /// Show again what the last run said, or any result or baseline
    Show of show,
    /// One self-contained page of results: charts, tables, warnings
    Report of report,
    /// Many nodes: run it on all, say which fail or are odd
    Fleet of fleet,
    /// Published claims: which do these results settle?
    ///
    /// And the one command that measures what is open, with the machine that it takes.
    Claims of claims,
    /// Write a result in another tool's format
    ///
    /// csv, csv-bins, markdown, hgrm, hlog, classic, prometheus.
    Export of export,
    /// Print the JSON Schema of result files
    Schema of schema,

    "Protocols and machines":
    /// Search every interleaving of a wake-up protocol
    ///
    /// And show how a known mistake loses a wake-up.
    Model of model,
    /// Run this program in a virtual machine
    ///
    /// Another topology, a polled disk, a CPU with user interrupts.
    Vm of vm,

    "The library, and this command":
    /// What the waiters of programs that use the library do
    ///
    /// They spin and hit, spin in vain, or sleep.
    Top of top,
    /// The services of this user: names, processes, clients, drops
    ListServices of list_services,
    /// Measure what sleeping costs here, for the library to read
    Tune of tune,
    /// Show what can be measured, and what this machine lacks
    List of list,
    /// How a mechanism works, or what a figure means
    Explain of explain,
    /// Print shell completions
    Completions of completions,
    /// Print the manual page
    Man of man,
}

const FIRST_EXAMPLES: &str = "EXAMPLES\n  \
    doorbell                              what a wake-up costs here, and by what\n  \
    doorbell pick --need epoll            the fastest that fits an event loop\n  \
    doorbell ping futex pipe --gap 1ms    two mechanisms after a sleep of 1 ms\n  \
    doorbell gate --max 50us              is a thread woken within 50 us here?\n  \
    doorbell check --baseline main        slower since --save-baseline main?\n";

/// The definition of the command line, from which `--help`,
/// completions and the manual page are made.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut verbs = String::new();
    for (title, names) in GROUPS {
        verbs.push_str(&format!("{title}:\n"));
        for verb in names.iter().filter_map(|name| command.find_subcommand(name.replace('_', "-"))) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            verbs.push_str(&format!("  {:14} {about}\n", verb.get_name()));
        }
        verbs.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{FIRST_EXAMPLES}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}\n{{after-help}}"
    );
    command.help_template(template)
}

pub fn main() -> ExitCode {
    signals::of_children();
    let hidden = std::env::args_os().nth(1);
    // Executed by its link below /proc, it would be called "exe" where processes are listed.
    let _ = rustix::thread::set_name(c"doorbell");
    let served = match hidden.as_deref().and_then(|verb| verb.to_str()) {
        Some(launch::HOST_VERB) => Some(host::main(doorbell_subjects::FAMILIES)),
        Some(doorbell_harness::primitives::PRIMITIVES_VERB) => Some(doorbell_harness::primitives::main()),
        #[cfg(feature = "machines")]
        Some(doorbell_vm::guest::VERB) => return doorbell_vm::guest::main(),
        _ => None,
    };
    if let Some(served) = served {
        return served.map_or_else(|error| complain(&error.into()), |()| ExitCode::SUCCESS);
    }
    signals::of_limits();
    with_room(of_the_user)
}

/// What `act` makes, on a stack with room for the parser, whatever a
/// limit (`ulimit -s`) leaves this thread.
fn with_room(act: fn() -> ExitCode) -> ExitCode {
    const ROOM: usize = 8 << 20;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    if limit.is_none_or(|bytes| bytes >= ROOM as u64) {
        return act();
    }
    match std::thread::Builder::new().stack_size(ROOM).spawn(act) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => {
            complain(&anyhow::Error::new(error).context("no stack with room can be had; raise `ulimit -s`"))
        }
    }
}

fn of_the_user() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let matches = match command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        // What was typed stands in the message; there it would move the cursor or turn the text round.
        Err(error) if error.use_stderr() && arguments.iter().any(|argument| obeyed(argument)) => {
            let message = error.render().to_string();
            return complain(&usage::Usage(message.trim_start_matches("error: ").trim().to_owned()).into());
        }
        Err(error) => {
            match arguments.iter().filter_map(|argument| argument.to_str()).find(|word| is_negative(word)) {
                // clap takes it for a flag.
                Some(word) if error.kind() == ErrorKind::UnknownArgument => {
                    return complain(
                        &usage::Usage(format!("'{word}' is negative, and nothing here takes less than 0"))
                            .into(),
                    );
                }
                _ => error.exit(),
            }
        }
    };
    if let Some(error) = stray(&matches) {
        error.exit();
    }
    if let Some(usage) = beside_a_plan(&matches) {
        return complain(&usage.into());
    }
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.terminal.apply();
    let done = match cli.verb {
        Some(verb) => verb.run(&cli.terminal),
        None => survey::run(cli.survey, &cli.terminal),
    };
    match (done, out::unwritten()) {
        (Ok(exit), None) => exit.into(),
        (Ok(exit), Some(error)) => {
            let _ = complain(&error);
            exit.and_unwritten().into()
        }
        (Err(error), _) => complain(&error),
    }
}

/// The error that a flag of the survey stands before another verb,
/// where it would be dropped without a word. What concerns the
/// terminal belongs to every verb and may stand on either side of it.
fn stray(matches: &clap::ArgMatches) -> Option<clap::Error> {
    let (verb, _) = matches.subcommand()?;
    let flags = <survey::Args as clap::Args>::augment_args(clap::Command::new("survey"));
    let stray = flags
        .get_arguments()
        .find(|flag| matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine))?;
    let flag = stray.get_long().unwrap_or_default();
    let message = format!(
        "--{flag} stands before '{verb}' and would belong to the survey: write it behind the verb, if `doorbell {verb} \
         --help` has it\n"
    );
    Some(Cli::command().error(ErrorKind::ArgumentConflict, message))
}

/// What is wrong with a flag that shapes a plan beside a file that
/// has one: any but those of the run.
fn beside_a_plan(matches: &clap::ArgMatches) -> Option<usage::Usage> {
    let command = Cli::command();
    let (definition, given) = match matches.subcommand() {
        Some((verb, given)) => (command.find_subcommand(verb)?, given),
        None => (&command, matches),
    };
    given.try_get_one::<std::path::PathBuf>("plan").ok().flatten()?;
    let shapes = definition.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        // By `net` the plan's experiment is told from the other of the same verb.
        let beside =
            argument.get_help_heading() == Some(common::RUN) || argument.is_global_set() || id == "net";
        !beside && given.value_source(id) == Some(ValueSource::CommandLine)
    })?;
    let name = shapes.get_long().map_or_else(|| shapes.get_id().to_string(), |flag| format!("--{flag}"));
    Some(usage::Usage(format!(
        "{name} stands beside --plan, and the file's plan is whole: change the file, or leave --plan out"
    )))
}

/// `text` with nothing in it that a terminal would obey; its lines stay.
fn inert(text: &str) -> String {
    let style = Style { unicode: true, ..Style::PLAIN };
    text.lines().map(|line| style.text(line)).collect::<Vec<_>>().join("\n")
}

/// Whether `word` is a number below 0, with or without a unit.
fn is_negative(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|number| number.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.'))
}

/// Whether a terminal would obey something in `argument`.
fn obeyed(argument: &std::ffi::OsStr) -> bool {
    let text = argument.to_string_lossy();
    inert(&text) != text
}

fn complain(error: &anyhow::Error) -> ExitCode {
    aside!("doorbell: {}", inert(&format!("{error:#}")));
    if error.is::<usage::Usage>() { Exit::Usage.into() } else { Exit::Failed.into() }
}

/// The arguments of a verb as they are written, after its name.
#[cfg(test)]
fn typed<A: clap::Args>(words: &str) -> A {
    let command = A::augment_args(clap::Command::new("verb").no_binary_name(true));
    A::from_arg_matches(&command.get_matches_from(words.split_whitespace())).unwrap()
}

/// A machine of which nothing is known but that it has two CPUs.
#[cfg(test)]
fn two_cpus() -> doorbell_results::machine::Machine {
    use doorbell_results::machine::topology::{Cpu, Topology};
    let (online, usable) = ((0..2).collect(), (0..2).collect());
    let cpus = (0..2).map(|id| Cpu { id, ..Cpu::default() }).collect();
    let topology = Topology { online, usable, cpus, ..Topology::default() };
    doorbell_results::machine::Machine { topology, ..doorbell_results::record::sample::machine() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_subjects::fan;
    use doorbell_subjects::operation;
    use doorbell_subjects::task;
    use doorbell_subjects::transfer;

    #[test]
    fn the_help_begins_with_examples_and_has_every_verb_in_one_group() {
        let help = command().render_help().to_string();
        let examples = help.lines().skip_while(|line| *line != "EXAMPLES").skip(1);
        assert_eq!(examples.take_while(|line| line.starts_with("  doorbell")).count(), 5, "{help}");
        assert!(help.find("EXAMPLES") < help.find("Usage:"), "{help}");
        // What stands below it is wrapped to the terminal.
        let mut ours = help.lines().take_while(|line| *line != "Options:");
        let wide = ours.find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "a line finds no room on a terminal of 80 columns");
        let modules = GROUPS.iter().flat_map(|(_, modules)| modules.iter());
        let mut named: Vec<String> = modules.map(|module| module.replace('_', "-")).collect();
        let command = command();
        let mut there: Vec<&str> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(|verb| verb.get_name())
            .collect();
        named.sort_unstable();
        there.sort_unstable();
        assert_eq!(named, there);
    }

    #[test]
    fn the_help_names_everything_that_can_be_asked_for() {
        let known: [(&str, Vec<&str>); 5] = [
            ("gpu", doorbell_subjects::gpu::all().iter().map(|way| way.name).collect()),
            ("fanout", fan::all().iter().map(|entry| entry.name).collect()),
            ("switch", operation::all().iter().map(|operation| operation.name).collect()),
            ("io", transfer::all().iter().map(|engine| engine.name).collect()),
            ("tasks", task::all().iter().map(|kind| kind.name).collect()),
        ];
        for (verb, names) in known {
            let help = command().find_subcommand(verb).unwrap().clone().render_long_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            for name in names {
                assert!(help.contains(name), "{name} is not in the help of {verb}");
            }
        }
    }
}

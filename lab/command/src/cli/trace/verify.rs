// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace whatif --verify`: runs the program as it is and with the change, in turn.
//!
//! HOW: each run is recorded from its first instruction on. What can be changed from outside is, in
//! the threads of the edge's two names as they appear; whatever else is changed the program is told
//! by its environment, as the user says. What has not ended when its time is over is ended.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::outside::Outside;
use super::starter::Starter;
use super::{name, recorded_as};
use crate::cli::common::ended_now;
use crate::cli::out::aside;
use crate::cli::usage::Usage;
use doorbell_harness::trace::program::Recorder;
use doorbell_results::anatomy::Anatomy;
use doorbell_results::anatomy::program::Engine;
use doorbell_results::configuration::{Configuration, Pattern, Until};
use doorbell_results::machine::Machine;
use doorbell_results::plan::{FEWEST_BLOCKS, Plan};
use doorbell_results::record::ResultFile;
use doorbell_results::record::question::{Question, Verify};
use doorbell_verdict::what_if::Change;
use doorbell_verdict::what_if::verify::Across;

/// How long a program may take to end once it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// Flags of `--verify`.
#[derive(Debug, clap::Args)]
pub struct Verification {
    /// Run the command as it is and with the change, in turn, and
    /// hold the prediction against what came
    #[arg(long, requires = "command")]
    pub verify: bool,
    /// What the environment of the runs with the change has more: how the program is told to spin,
    /// to use another mechanism, or to gather
    #[arg(long, value_name = "VAR=VALUE", value_parser = variable, requires = "verify")]
    with: Vec<(String, String)>,
    /// How long a run of the command is recorded at the most; a
    /// program that has not ended then is ended
    #[arg(
        long,
        value_parser = doorbell_results::quantity::span,
        value_name = "TIME",
        default_value = "2s",
        requires = "verify"
    )]
    time: Duration,
    /// Blocks, each of a run without the change and one with it, in random order
    #[arg(long, value_name = "N", default_value_t = FEWEST_BLOCKS, requires = "verify",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    blocks: u32,
    /// Record the processes too that the command starts
    #[arg(long, requires = "verify")]
    children: bool,
    /// What records: bpf or tracefs [default: bpf where it can be had]
    #[arg(long, value_name = "ENGINE", value_parser = super::engine(&super::ENGINES[..2]), requires = "verify")]
    engine: Option<Engine>,
    /// Where the result file of the runs goes (`-` for standard output) [default:
    /// a new file in the user's state folder]
    #[arg(long, short, value_name = "FILE", requires = "verify")]
    pub output: Option<PathBuf>,
    /// Print the result file of the runs to standard output instead of tables
    #[arg(long, requires = "verify")]
    pub json: bool,
    /// The command that was recorded
    #[arg(last = true, value_name = "COMMAND", requires = "verify")]
    command: Vec<OsString>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("'{text}' names no variable of the environment and its value: SPIN_US=18"))?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Verification {
    /// That the change can be made.
    pub fn check(&self, change: &Change) -> Result<(), Usage> {
        if change.is_from_outside() || !self.with.is_empty() {
            return Ok(());
        }
        Err(Usage(
            "that cannot be done to a program from outside, as pin, nice, scheduler and timer_slack \
             can: say how it is told to make the change, with `--with 'SPIN_US=18'`, a variable of \
             the environment of the changed runs"
                .to_owned(),
        ))
    }

    /// Whether standard output is for the result alone.
    pub fn is_piped(&self) -> bool {
        self.json || self.output.as_deref().is_some_and(|file| file.as_os_str() == "-")
    }
}

/// Runs the command without the change and with it, in blocks, and returns the result that has both
/// and what was asked of it; partial where `stop` ended it early.
pub fn runs(
    args: &Verification,
    question: Verify,
    edge: &Across,
    machine: Machine,
    quiet: bool,
    stop: impl Fn() -> bool + Sync,
) -> anyhow::Result<ResultFile> {
    let program = args.command[0].to_string_lossy();
    if !quiet {
        aside!(
            "doorbell: running {program} {} times, for {:.1} s at the most",
            2 * args.blocks,
            args.time.as_secs_f64()
        );
    }
    let begun = SystemTime::now();
    let called =
        Path::new(&args.command[0]).file_name().map_or(program.clone(), |name| name.to_string_lossy());
    let configuration =
        |called: &str| Configuration::new(called, Pattern::OneWay { gap_ns: 0 }, Until::time(args.time));
    let change = &question.change;
    let both = [configuration(&called), configuration(&format!("{called} {change}"))];
    let (mut records, mut partial) = (Vec::new(), false);
    'blocks: for block in 0..args.blocks {
        let first = fastrand::bool();
        for changed in [first, !first] {
            let (change, begun) = (Some(change).filter(|_| changed), SystemTime::now());
            // In a thread of its own: where the kernel's trace files have to be mounted that is
            // done for the thread alone, and the next run of the program is to have its own mounts.
            let run =
                std::thread::scope(|scope| scope.spawn(|| one(args, change, edge, &machine, &stop)).join());
            let run = run.map_err(|_| anyhow::anyhow!("a run of {program} was not recorded"))?;
            partial = stop();
            if partial {
                break 'blocks;
            }
            let mut anatomy = run?;
            name(&mut anatomy, &called, 1);
            records.push(recorded_as(&both[usize::from(changed)], block, &machine, begun, anatomy));
        }
    }
    let plan = Plan {
        repeat_on_interference: false,
        question: Some(Question::Verify(question)),
        ..Plan::new("trace-verify", both.to_vec(), args.blocks, 0)
    };
    Ok(ResultFile { partial, ..ended_now(plan, machine, begun, records) })
}

/// One run.
fn one(
    args: &Verification,
    change: Option<&Change>,
    edge: &Across,
    machine: &Machine,
    stop: impl Fn() -> bool,
) -> anyhow::Result<Anatomy> {
    let starter = Starter::new()?;
    let online = &machine.topology.online;
    let mut recorder = Recorder::new(args.engine, machine.clock, online, args.children)?;
    recorder.follow_children_of(starter.task())?;
    recorder.start()?;
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    if change.is_some() {
        command.envs(args.with.iter().map(|(name, value)| (name, value)));
    }
    let shown = || Usage(format!("cannot start '{}'", args.command[0].to_string_lossy()));
    let started = Started(starter.start(command).with_context(shown)?);
    let process = started.process();
    let mut outside = Outside::new(edge.threads(), change);
    let mut looked = Ok(());
    let ended = || {
        looked = outside.look(process, args.children);
        looked.is_err() || started.has_ended()
    };
    let recorded = recorder.record(&[(process, process)], Some(args.time), ended, &stop)?;
    started.end();
    looked?;
    if !stop() {
        outside.made()?;
    }
    Ok(recorded.anatomy)
}

/// A program, the first of a process group, that ends with this.
struct Started(Child);

impl Started {
    fn process(&self) -> i32 {
        Pid::from_child(&self.0).as_raw_nonzero().get()
    }

    /// Whether it has ended. It is not waited for: its number is to stay that of its group.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // What cannot be asked is taken for ended: nobody waits for it.
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.0)), look), Ok(None))
    }

    /// Lets it end by itself, for a while.
    fn end(self) {
        let told = Instant::now();
        // An error means that nobody of the group is there.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::TERM);
        while !self.has_ended() && told.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace whatif --verify`: runs the program as it is and with the change, in turn.
//!
//! HOW: each run is recorded from its first instruction on. Pinning is done from outside, to the
//! threads of the edge's two names as they appear; whatever else is changed the program is told by
//! its environment, as the user says. What has not ended when its time is over is ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::starter::Starter;
use crate::cli::out::aside;
use crate::cli::usage::Usage;
use doorbell_harness::trace::program::{Recorder, processes_of};
use doorbell_results::anatomy::program::{Engine, Program};
use doorbell_results::machine::Machine;
use doorbell_verdict::what_if::Change;
use doorbell_verdict::what_if::verify::{Across, Run};

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
    #[arg(long, value_name = "N", default_value_t = 5, requires = "verify",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    blocks: u32,
    /// Record the processes too that the command starts
    #[arg(long, requires = "verify")]
    children: bool,
    /// What records: bpf or tracefs [default: bpf where it can be had]
    #[arg(long, value_name = "ENGINE", value_parser = super::engine(&super::ENGINES[..2]), requires = "verify")]
    engine: Option<Engine>,
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
        if matches!(change, Change::Pin(_)) || !self.with.is_empty() {
            return Ok(());
        }
        Err(Usage(
            "only pinning can be done to a program from outside: say how it is told to make the \
             change, with `--with 'SPIN_US=18'`, a variable of the environment of the changed runs"
                .to_owned(),
        ))
    }
}

/// Blocks of runs without `change` at `edge` and with it; none where `stop` ended them early.
pub fn blocks(
    args: &Verification,
    change: &Change,
    edge: &Across,
    machine: &Machine,
    quiet: bool,
    stop: impl Fn() -> bool + Sync,
) -> anyhow::Result<Option<Vec<[Run; 2]>>> {
    let program = args.command[0].to_string_lossy();
    if !quiet {
        aside!(
            "doorbell: running {program} {} times, for {:.1} s at the most",
            2 * args.blocks,
            args.time.as_secs_f64()
        );
    }
    let mut blocks = Vec::new();
    for _ in 0..args.blocks {
        let first = fastrand::bool();
        let mut both = [None, None];
        for changed in [first, !first] {
            let change = Some(change).filter(|_| changed);
            // In a thread of its own: where the kernel's trace files have to be mounted that is
            // done for the thread alone, and the next run of the program is to have its own mounts.
            let run =
                std::thread::scope(|scope| scope.spawn(|| one(args, change, edge, machine, &stop)).join());
            let run = run.map_err(|_| anyhow::anyhow!("a run of {program} was not recorded"))??;
            both[usize::from(changed)] = Some(run);
            if stop() {
                return Ok(None);
            }
        }
        if let [Some(before), Some(after)] = both {
            blocks.push([before, after]);
        }
    }
    Ok(Some(blocks))
}

/// One run.
fn one(
    args: &Verification,
    change: Option<&Change>,
    edge: &Across,
    machine: &Machine,
    stop: impl Fn() -> bool,
) -> anyhow::Result<Run> {
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
    let mut pinning = Pinning { names: edge.threads(), cpus: None, done: HashSet::new() };
    if let Some(Change::Pin(cpus)) = change {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu as usize));
        pinning.cpus = Some(set);
    }
    let ended = || {
        pinning.look(process, args.children);
        started.has_ended()
    };
    let recorded = recorder.record(&[(process, process)], Some(args.time), ended, stop)?;
    started.end();
    let nothing = Program::default();
    let program = recorded.anatomy.program.as_ref().unwrap_or(&nothing);
    Ok(Run::of(program, edge, change, recorded.ended))
}

/// Threads that are to run on some CPUs.
struct Pinning<'edge> {
    names: Vec<&'edge str>,
    /// None where all is looked at alike and nothing done.
    cpus: Option<CpuSet>,
    done: HashSet<i32>,
}

impl Pinning<'_> {
    fn look(&mut self, process: i32, children: bool) {
        let processes = if children { processes_of(process) } else { vec![process] };
        for process in processes {
            let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
            let tasks = tasks.into_iter().flatten().flatten();
            let tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
            for task in tasks.filter(|task| !self.done.contains(task)).collect::<Vec<_>>() {
                let path = format!("/proc/{process}/task/{task}/comm");
                let name = doorbell_files::kernel(Path::new(&path)).unwrap_or_default();
                if !self.names.contains(&name.trim_end()) {
                    continue;
                }
                // One that has ended meanwhile needs no CPU.
                if let Some((cpus, task)) = self.cpus.as_ref().zip(Pid::from_raw(task)) {
                    let _ = sched_setaffinity(Some(task), cpus);
                }
                self.done.insert(task);
            }
        }
    }
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

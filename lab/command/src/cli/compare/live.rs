// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell compare --live`: two programs measured beside each other.
//!
//! HOW: both programs live at once and take turns in slices of a millisecond, for as many pairs of
//! processes as a look is to have; a look joins what both have told so far. Where a command changes
//! first what both share, each is run for a block, in turn.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};

use super::super::common::{Exit, Terminal};
use super::super::out::{self, aside};
use super::super::signals;
use super::super::usage::refuse;
use super::Args;
use doorbell_harness::environment::{Watch, interference};
use doorbell_harness::in_turn::{Token, VARIABLE};
use doorbell_harness::run_dir::RunDir;
use doorbell_machine::root::Root;
use doorbell_machine::topology;
use doorbell_report::comparison::comparison;
use doorbell_report::style::Style;
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::{Record, ResultFile, read};
use doorbell_results::written::time_ns;
use doorbell_verdict::compare::{Turns, compare_beside};

/// After how many pairs of processes, and after how many blocks, the runs are looked at.
const PAIRS: [u32; 3] = [20, 40, 80];
const BLOCKS: [u32; 3] = [10, 20, 40];

const fn last(looks: [u32; 3]) -> u32 {
    looks[looks.len() - 1]
}

/// A pair of processes lives at least so long, and no longer than so
/// long, for a share of the time that there is.
const PAIR: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// How long a program may take until it says that it takes turns: one that does not know how to
/// measures at once, and ends.
const HEARD: Duration = Duration::from_secs(60);

/// Why two programs cannot take turns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NoTurns {
    #[error(
        "`{command}` does not take turns: it is no doorbell, or one of an older release; give each \
         `--output FILE` and compare the two files"
    )]
    Deaf { command: String },
    #[error(
        "the two commands were about to measure different things, so neither can take turns with \
         the other; let both measure the same, or give each `--output FILE` and compare the two \
         files"
    )]
    Differ,
}

/// What both took turns by.
enum Took {
    Slices,
    /// Runs of so long each, since `first` may hold for the whole
    /// machine and cannot be done every few milliseconds.
    Blocks {
        each: Duration,
        first: String,
    },
}

impl Took {
    fn turns(&self) -> Turns {
        match self {
            Self::Slices => Turns::Slices,
            Self::Blocks { .. } => Turns::Blocks,
        }
    }

    /// As a sentence.
    fn told(&self, of: &ResultFile) -> String {
        let pairs = of.plan.blocks;
        match self {
            Self::Slices if of.records.iter().all(|record| record.slices.is_empty()) => {
                format!("The two took turns by trials, in {pairs} blocks: what is measured has no slices.")
            }
            Self::Slices => {
                let slice = of.plan.bench.as_ref().map_or(0, |bench| bench.slice_ns);
                format!(
                    "The two took turns in slices of {}, between {pairs} pairs of processes each.",
                    time_ns(slice as f64)
                )
            }
            Self::Blocks { each, first } => format!(
                "The two took turns in blocks of about {:.1} s, a run of the program each: \
                 `{first}` may change what both share, and cannot be done every few milliseconds.",
                each.as_secs_f64()
            ),
        }
    }
}

/// The first part of a command of the shell that may change more than the program that it ends in.
fn prepares(command: &str) -> Option<&str> {
    let command = command.trim();
    if ["|", "`", "$("].iter().any(|sign| command.contains(sign)) {
        return Some(command);
    }
    let parts: Vec<&str> =
        command.split([';', '\n']).flat_map(|part| part.split("&&")).map(str::trim).collect();
    let (_, first) = parts.split_last()?;
    first.iter().copied().find(|part| !part.is_empty() && !is_its_own(part))
}

/// Whether a part of a command changes nothing but the shell and what that starts.
fn is_its_own(part: &str) -> bool {
    let words: Vec<&str> = part.split_whitespace().collect();
    let own_file = |path: &&str| {
        ["/proc/self/", "/proc/$$/"].iter().any(|own| path.starts_with(own))
            || ["/cgroup.procs", "/cgroup.threads"].iter().any(|own| path.ends_with(own))
    };
    match words.as_slice() {
        ["cd" | "export" | "unset" | "ulimit" | "umask" | "set" | "exec" | ":", ..] => true,
        // A process that moves itself takes what it starts along.
        ["echo", .., target] => own_file(&target.trim_start_matches('>')),
        _ => false,
    }
}

/// What was measured so far.
type Both = [Option<ResultFile>; 2];

/// Both commands in turn, until every difference is decided or the time is over.
pub(super) fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    let [candidate] = &args.candidates[..] else {
        return refuse("--live takes two commands and the arguments of both behind --");
    };
    let commands = [&args.baseline, candidate].map(|command| command.to_string_lossy().into_owned());
    let live = Live { args, terminal, commands, interrupted: signals::listen()? };
    let (both, took) = match live.commands.iter().find_map(|command| prepares(command)) {
        Some(first) => live.blocks(first.to_owned())?,
        None => (live.slices()?, Took::Slices),
    };
    if !terminal.quiet {
        aside!();
    }
    let [Some(before), Some(after)] = &both else { anyhow::bail!("nothing was measured") };
    let compared = compare_beside(before, after, took.turns(), live.relevant(), PAIRS.len());
    let style = Style::of_stdout();
    let text = style.wrap(&took.told(before), 0)
        + &comparison(&compared, &live.commands[0], &live.commands[1], &style);
    out::say(&text);
    Ok(Exit::from(compared.status()))
}

struct Live<'args> {
    args: &'args Args,
    terminal: &'args Terminal,
    commands: [String; 2],
    interrupted: std::sync::Arc<AtomicBool>,
}

impl Live<'_> {
    fn relevant(&self) -> f64 {
        f64::from(self.args.threshold) / 1e6
    }

    fn told(&self, done: u32, most: u32, what: &str) {
        if !self.terminal.quiet {
            out::aside_bytes(format!("\r{done} of {most} {what} ").as_bytes());
        }
    }

    /// Whether nothing more is to be measured.
    fn is_enough(&self, both: &Both, turns: Turns, begun: Instant) -> bool {
        let [Some(before), Some(after)] = both else { return false };
        // The next look comes after as long again, and may come late by a fifth.
        self.interrupted.load(Relaxed)
            || begun.elapsed() * 2 > self.args.within * 6 / 5
            || compare_beside(before, after, turns, self.relevant(), PAIRS.len()).is_decided()
    }

    /// Both at once, slice by slice.
    fn slices(&self) -> anyhow::Result<Both> {
        let run_dir = RunDir::create()?;
        let pair = (self.args.within / last(PAIRS)).clamp(PAIR[0], PAIR[1]);
        let topology = topology::read(&Root::live(), None);
        let begun = Instant::now();
        let mut both: Both = [None, None];
        let mut done = 0;
        for look in PAIRS {
            let path = run_dir.path().join(format!("turns-{look}"));
            let token = Token::create(&path, pair, look - done, u64::from(look))?;
            let one = self.beside(&token, &topology)?;
            for ((whole, one), command) in both.iter_mut().zip(one).zip(&self.commands) {
                join(whole, one, done, look, command);
            }
            done = look;
            self.told(done, last(PAIRS), "pairs");
            if self.is_enough(&both, Turns::Slices, begun) {
                break;
            }
        }
        Ok(both)
    }

    /// Both at once until both have ended.
    fn beside(&self, token: &Token, topology: &Topology) -> anyhow::Result<[ResultFile; 2]> {
        let watch = Watch::begin(&[], topology);
        let start = |side: usize| {
            let mut command = self.command(side);
            // So that nobody is left where it is ended early.
            command.env(VARIABLE, token.variable(side)).process_group(0).spawn()
        };
        let mut started = Started(Vec::new());
        for side in 0..2 {
            started.0.push(start(side).with_context(|| self.commands[side].clone())?);
        }
        let begun = Instant::now();
        let mut readers = Vec::new();
        for child in &mut started.0 {
            let mut output = child.stdout.take().context("a program's output is not there")?;
            readers.push(std::thread::spawn(move || {
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut output, &mut bytes).map(|_| bytes)
            }));
        }
        // In the order in which they end: who fails first is why the other ends, too.
        let mut ended: Vec<(usize, ExitStatus)> = Vec::new();
        let mut told = false;
        while ended.len() < 2 {
            for (side, child) in started.0.iter_mut().enumerate() {
                let has_ended = ended.iter().any(|(ended, _)| *ended == side);
                let status = if has_ended { None } else { child.try_wait()? };
                if let Some(status) = status {
                    ended.push((side, status));
                    token.is_gone(side);
                }
                let unheard = status.is_some_and(|status| status.success()) || begun.elapsed() > HEARD;
                if unheard && !token.is_heard(side) {
                    return Err(NoTurns::Deaf { command: self.commands[side].clone() }.into());
                }
            }
            if token.differ() {
                return Err(NoTurns::Differ.into());
            }
            if !told && self.interrupted.load(Relaxed) {
                started.tell(Signal::INT);
                told = true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let environment = watch.end();
        let warnings = interference(&environment);
        let mut outputs = readers.into_iter().map(std::thread::JoinHandle::join).collect::<Vec<_>>();
        let mut results: Both = [None, None];
        for (side, status) in ended {
            let unread = || anyhow::anyhow!("a program's output was not read");
            let output = std::mem::replace(&mut outputs[side], Ok(Ok(Vec::new())));
            let mut result = self.result(output.map_err(|_| unread())??, status, &self.commands[side])?;
            // As it begins each sees the other at work; what was there besides is seen from here.
            result.machine.load = None;
            for record in &mut result.records {
                record.environment = environment.clone();
                record.warnings.extend(warnings.iter().cloned());
            }
            results[side] = Some(result);
        }
        match results {
            [Some(before), Some(after)] => Ok([before, after]),
            _ => anyhow::bail!("a program told nothing"),
        }
    }

    /// Command `side` with what both measure.
    fn command(&self, side: usize) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{} \"$@\"", self.commands[side]), "sh"])
            .args(&self.args.measured)
            .args(["--quiet", "--output", "-"])
            .env(signals::COMPARED, "1")
            .stdout(Stdio::piped());
        command
    }

    fn result(&self, bytes: Vec<u8>, status: ExitStatus, command: &str) -> anyhow::Result<ResultFile> {
        // 4 is a verdict that one block leaves open; one that was interrupted has told what it has.
        let usual =
            matches!(status.code(), Some(0 | 4)) || self.interrupted.load(Relaxed) && !bytes.is_empty();
        let measured = self.args.measured.join(" ");
        anyhow::ensure!(usual, "{command} {measured} ended with {status}; what it says stands above");
        Ok(read::read_bytes(bytes, command)?)
    }

    /// A block each.
    fn blocks(&self, first: String) -> anyhow::Result<(Both, Took)> {
        let begun = Instant::now();
        let mut both: Both = [None, None];
        let mut runs = 0;
        for block in 0..last(BLOCKS) {
            // A, B, B, A: what drifts falls on both alike.
            let order = if block % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                let seed = (block + 1).to_string();
                let output = self
                    .command(side)
                    .args(["--blocks", "1", "--seed", &seed])
                    .stderr(Stdio::inherit())
                    .output()
                    .with_context(|| self.commands[side].clone())?;
                let one = self.result(output.stdout, output.status, &self.commands[side])?;
                join(&mut both[side], one, block, block + 1, &self.commands[side]);
                runs += 1;
            }
            self.told(block + 1, last(BLOCKS), "blocks");
            let is_look = BLOCKS.contains(&(block + 1)) || self.interrupted.load(Relaxed);
            if is_look && self.is_enough(&both, Turns::Blocks, begun) {
                break;
            }
        }
        Ok((both, Took::Blocks { each: begun.elapsed() / runs.max(1), first }))
    }
}

/// How often it is looked whether a program has ended: some 10 µs each time.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Programs that end with this.
struct Started(Vec<Child>);

impl Started {
    /// Sends `signal` to each that has not ended, and to all that it started.
    fn tell(&mut self, signal: Signal) {
        for child in &mut self.0 {
            if matches!(child.try_wait(), Ok(None)) {
                // An error means that it has ended meanwhile.
                let _ = kill_process_group(Pid::from_child(child), signal);
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.tell(Signal::KILL);
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

/// Puts `one`, whose first block is number `before`, after `whole`, which then has `blocks`.
fn join(whole: &mut Option<ResultFile>, mut one: ResultFile, before: u32, blocks: u32, command: &str) {
    one.records.iter_mut().for_each(|record: &mut Record| record.block += before);
    one.primitives.iter_mut().for_each(|reading| reading.block += before);
    one.plan.blocks = blocks;
    let Some(whole) = whole else {
        *whole = Some(ResultFile { name: Some(command.to_owned()), ..one });
        return;
    };
    whole.records.append(&mut one.records);
    whole.primitives.append(&mut one.primitives);
    whole.warnings.append(&mut one.warnings);
    whole.warnings.dedup();
    whole.plan.blocks = blocks;
    whole.partial |= one.partial;
    whole.finished_at_unix_ns = one.finished_at_unix_ns;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_does_for_its_own_program_alone_does_not_keep_two_from_taking_turns_by_slices() {
        for own in [
            "./doorbell",
            "A=1 nice -n 5 doorbell 2>/dev/null",
            "ulimit -l 64; cd /tmp && doorbell",
            "echo $$ > /sys/fs/cgroup/small/cgroup.procs; doorbell",
            "echo 0 >/proc/self/timerslack_ns; exec doorbell",
        ] {
            assert_eq!(prepares(own), None, "{own}");
        }
        for (shared, first) in [
            (
                "sysctl -qw kernel.sched_autogroup_enabled=0; doorbell",
                "sysctl -qw kernel.sched_autogroup_enabled=0",
            ),
            (
                "echo 1 > /proc/sys/kernel/numa_balancing && doorbell",
                "echo 1 > /proc/sys/kernel/numa_balancing",
            ),
            ("export A=1; swapoff -a; doorbell", "swapoff -a"),
            ("taskset -c $(cat cpus) doorbell", "taskset -c $(cat cpus) doorbell"),
        ] {
            assert_eq!(prepares(shared), Some(first), "{shared}");
        }
    }
}

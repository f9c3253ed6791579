// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host of one trial: opens the links, forks the sides, sleeps until they are done or stop making progress.

use super::arena::Arena;
use super::control::{Control, Step};
use super::family::{self, Cast, Families, Stage};
use super::fork::fork;
use super::journal::Journal;
use super::latency_limit::{self, LatencyLimit};
use super::load::session::Session;
use super::no_task;
use super::order::{Order, REPORT, Report, Task};
use super::part::Role;
use super::run_dir::RunDir;
use super::shares::Shares;
use super::side::{Side, SideReport};
use super::tracer::Tracer;
use super::watchdog::Watchdog;
use crate::futex::FutexLink;
use crate::mechanism::Link;
use crate::site::{Site, Word};
use doorbell_machine::pinned::together;
use doorbell_machine::root::Root;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::LastSeen;
use doorbell_results::record::subject::Contexts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, set_parent_process_death_signal, waitpid,
};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
/// Without a step forward for this long, plus four gaps, a trial hangs. Longer than any time slice or throttled quota
/// period a busy machine makes a side wait for (CFS bandwidth periods are 100 ms by default).
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the host looks for progress. Its own wake-ups, some 10 µs a second, are part of the interference measured
/// by the null mechanism's maximum.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often the host looks whether the process of a thread that closed its pipe is dead: closing comes before dying.
const OBITUARY_LOOK: Duration = Duration::from_millis(5);

/// Runs the trial ordered on standard input and reports on standard output; the whole life of a host process.
pub fn main(families: Families) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Its own process group: Ctrl-C at a terminal is for the command, which then asks for an early end.
    rustix::process::setpgid(None, None)?;
    let order: Order = read_line(&mut io::stdin())?;
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()) != Some(order.parent) {
        return Ok(());
    }
    let report = under_load(&order, families).unwrap_or_else(|cause| Report::Failed { cause, at: None });
    let mut line = serde_json::to_vec(&report)?;
    line.push(b'\n');
    #[expect(clippy::disallowed_methods, reason = "the command reads it, and not a person")]
    let mut out = io::stdout();
    out.write_all(&line)
}

/// Reads one line byte by byte: the rest of the stream is left where it is, for its end to be seen.
fn read_line<T: for<'de> Deserialize<'de>>(input: &mut impl Read) -> io::Result<T> {
    let mut line = Vec::new();
    let mut byte = [0];
    while input.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Runs what was ordered; a trial under the load that its configuration asks for.
fn under_load(order: &Order, families: Families) -> Result<Report, String> {
    // SAFETY: the launcher left this descriptor open for us under this number, and nobody else here owns it.
    let lock = File::from(unsafe { OwnedFd::from_raw_fd(order.lock) });
    let run_dir = RunDir::inherited(order.run_dir.clone(), lock);
    let configuration = match &order.task {
        Task::Trial(configuration) => configuration,
        Task::Bench(bench) => return super::bench::run(order, bench, families, &run_dir),
    };
    let hold =
        |limit| LatencyLimit::hold(limit).map_err(|error| format!("{}: {error}", latency_limit::DEVICE));
    // Held until the trial is over: it ends with the value.
    let _held = configuration.latency_limit_us.map(hold).transpose()?;
    let Some(load) = &configuration.load else {
        return run(order.clock, configuration, families, &run_dir, None);
    };
    let topology = doorbell_machine::topology::read(&Root::live(), None);
    let mut session = Session::start(load, &topology).map_err(|error| format!("the load: {error}"))?;
    session.begin();
    let mut report = run(order.clock, configuration, families, &run_dir, Some(&mut session))?;
    if let Report::Done { load, .. } = &mut report {
        *load = Some(session.end().map_err(|error| format!("the load: {error}"))?);
    }
    Ok(report)
}

fn run(
    clock: Clock,
    configuration: &Configuration,
    families: Families,
    run_dir: &RunDir,
    load: Option<&mut Session>,
) -> Result<Report, String> {
    let family = family::of(families, configuration.pattern)
        .ok_or("nothing here runs a configuration of this pattern")?;
    if let Some(fan) = family.fan_out(configuration) {
        return super::fanout::run(clock, configuration, fan?, run_dir, load);
    }
    let message = family.message_bytes(configuration);
    let words = family.own_bytes(configuration);
    // Control words, payloads both ways with their alignment, and room for the mechanisms' own words.
    let traced = if configuration.trace.is_some() { Journal::BYTES } else { 0 };
    let size = size_of::<Control>() + words + traced + 2 * (message + 4096) + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let control = Control::place(arena).map_err(|error| error.to_string())?;
    let bytes = || arena.bytes(message).map_err(|error| error.to_string());
    let payload = [bytes()?, bytes()?];
    let journal = match configuration.trace {
        Some(_) => Some(Journal::place(arena).map_err(|error| error.to_string())?),
        None => None,
    };
    let site = Site::new(configuration.contexts, arena, run_dir);
    let Cast { roles, links, contexts, reference } =
        family.open(&Stage { configuration, clock, site: &site, arena, control, run_dir })?;
    let reference_lines = if reference {
        let link = || FutexLink::open(&site).map_err(|error| error.to_string());
        Some([link()?, link()?])
    } else {
        None
    };
    let life = |role| {
        let side = Side {
            reference_lines,
            journal: journal.clone(),
            ..Side::new(role, clock, configuration.clone(), control, payload)
        };
        serde_json::to_vec(&side.play(|role, side| links.play(role, side))).unwrap_or_default()
    };
    let mut running = RunningSides::fork(contexts, roles, &life).map_err(|error| error.to_string())?;
    let tracer = match configuration.trace.zip(journal.clone()) {
        Some((trace, journal)) => match Tracer::begin(configuration, trace, clock, control, journal) {
            Ok(tracer) => Some(tracer),
            Err(error) => {
                running.end();
                return Err(error.to_string());
            }
        },
        None => None,
    };
    let told = |text: &[u8]| serde_json::from_slice::<SideReport>(text).ok().map(|report| report.error);
    let gap_ns = configuration.pattern.gap_ns();
    let watched = Watched { controls: &[control], now: None, roles, gap_ns, told: &told };
    let home = running.watch(&watched, load, tracer).map_err(|error| error.to_string());
    run_dir.clear_notes();
    let (texts, interrupted, tracer) = match home? {
        Home::Ended(report) => return Ok(report),
        Home::Came { texts, interrupted, tracer } => (texts, interrupted, tracer),
    };
    let sides = texts.iter().map(|text| serde_json::from_slice(text)).collect::<Result<Vec<SideReport>, _>>();
    let anatomy = tracer.map(|tracer| tracer.end()).transpose().map_err(|error| error.to_string())?;
    let sides = sides.map_err(|error| error.to_string())?;
    Ok(Report::Done { sides, interrupted, load: None, anatomy: anatomy.map(Box::new) })
}

/// How a process ends that could not have both of its threads: an error of the system (sysexits(3), `EX_OSERR`).
const NO_THREAD: i32 = 71;

/// Whom a host watches.
pub(crate) struct Watched<'host> {
    /// The words of each configuration.
    pub(crate) controls: &'host [&'static Control],
    /// Which of them it is now; none where there is but one.
    pub(crate) now: Option<&'static Word>,
    pub(crate) roles: [Role; 2],
    /// The longest time between two steps that is nobody's fault.
    pub(crate) gap_ns: u64,
    /// What a side's report says of an error; none of what is no report.
    pub(crate) told: &'host dyn Fn(&[u8]) -> Option<Option<String>>,
}

impl Watched<'_> {
    fn now(&self) -> usize {
        self.now.map_or(0, |now| now.load(Relaxed) as usize).min(self.controls.len().saturating_sub(1))
    }

    fn control(&self) -> Option<&'static Control> {
        self.controls.get(self.now()).copied()
    }

    /// Where both sides are: in which configuration, at which step and number.
    fn places(&self) -> (usize, [(u32, u64); 2]) {
        (self.now(), self.control().map(|control| control.places()).unwrap_or_default())
    }

    fn last_seen(&self) -> Vec<LastSeen> {
        self.control().map(|control| control.last_seen(self.roles)).unwrap_or_default()
    }
}

/// How two sides ended.
pub(crate) enum Home {
    /// Both made their reports.
    Came { texts: [Vec<u8>; 2], interrupted: bool, tracer: Option<Box<Tracer>> },
    /// They hung, or one failed.
    Ended(Report),
}

impl Home {
    fn failed(cause: String) -> Self {
        Self::Ended(Report::Failed { cause, at: None })
    }
}

/// The sides at work: their processes and the pipes they report through.
#[derive(Debug)]
pub(crate) struct RunningSides {
    processes: Vec<Pid>,
    pipes: Vec<File>,
}

impl RunningSides {
    /// `life` is what a side does, and the report that it makes.
    pub(crate) fn fork(
        contexts: Contexts,
        roles: [Role; 2],
        life: &(dyn Fn(Role) -> Vec<u8> + Sync),
    ) -> io::Result<Self> {
        let mut running = Self { processes: Vec::new(), pipes: Vec::new() };
        let mut pipe = || -> io::Result<OwnedFd> {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            running.pipes.push(File::from(read));
            Ok(write)
        };
        // The end of a pipe is the end of its side: each writing end lives in that side alone.
        match contexts {
            Contexts::Processes => {
                for role in roles {
                    let write = pipe()?;
                    running.processes.push(fork(|| act(life, role, &write))?);
                }
            }
            Contexts::Threads => {
                let [first, second] = [pipe()?, pipe()?];
                running.processes.push(fork(|| {
                    let done =
                        together(move || act(life, roles[0], &first), move || act(life, roles[1], &second));
                    if done.is_err() {
                        // SAFETY: ends this process at once, as `fork` does when its work is done.
                        // JUSTIFICATION: `std::process::exit` would run what the parent has registered for its own end.
                        unsafe { libc::_exit(NO_THREAD) }
                    }
                })?);
            }
        }
        Ok(running)
    }

    /// Gathers both reports, or finds out why there are none.
    pub(crate) fn watch(
        mut self,
        watched_sides: &Watched<'_>,
        mut load: Option<&mut Session>,
        mut tracer: Option<Tracer>,
    ) -> io::Result<Home> {
        let roles = watched_sides.roles;
        let patience = PATIENCE + 4 * Duration::from_nanos(watched_sides.gap_ns);
        let mut texts = [Vec::new(), Vec::new()];
        let mut open = [true, true];
        let mut interrupted = false;
        let mut watchdog = Watchdog::new(patience, REPORT, watched_sides.places(), Instant::now());
        let mut shares = Shares::new(Instant::now());
        let stdin = io::stdin();
        while open.contains(&true) {
            let mut watched = Vec::new();
            for (pipe, open) in self.pipes.iter().zip(open) {
                if open {
                    watched.push(PollFd::new(pipe, PollFlags::IN));
                }
            }
            let reports = watched.len();
            if !interrupted {
                watched.push(PollFd::new(&stdin, PollFlags::IN));
            }
            let bell = watched.len();
            if let Some(tracer) = &tracer {
                watched.push(PollFd::from_borrowed_fd(tracer.bell(), PollFlags::IN));
            }
            let timeout = Timespec { tv_sec: LOOK_EVERY.as_secs() as i64, tv_nsec: 0 };
            let ready = poll(&mut watched, Some(&timeout))?;
            let asked = !interrupted && watched.get(reports).is_some_and(|stdin| !stdin.revents().is_empty());
            let called = watched.get(bell).is_some_and(|bell| !bell.revents().is_empty());
            let readable: Vec<bool> = watched[..reports].iter().map(|fd| !fd.revents().is_empty()).collect();
            if asked {
                interrupted = true;
                watched_sides.controls.iter().for_each(|control| control.interrupted.store(1, Relaxed));
            }
            if called && let Some(tracer) = &mut tracer {
                if let Err(error) = tracer.catch() {
                    self.end();
                    return Ok(Home::failed(error.to_string()));
                }
                watchdog.calm(Instant::now());
            }
            let mut readable = readable.into_iter();
            for index in 0..2 {
                if open[index] && readable.next() == Some(true) {
                    let mut buffer = [0; 1 << 16];
                    let length = self.pipes[index].read(&mut buffer)?;
                    texts[index].extend_from_slice(&buffer[..length]);
                    open[index] = length > 0;
                    watchdog.calm(Instant::now());
                    if open[index] {
                        continue;
                    }
                    // Without this one, the other side would wait until patience runs out.
                    let told = (watched_sides.told)(&texts[index]);
                    let cause = told.unwrap_or_else(|| Some(self.cause_of_death(roles[index])));
                    if let Some(cause) = cause {
                        self.end();
                        return Ok(Home::failed(cause));
                    }
                }
            }
            if ready == 0 {
                if let Some(load) = load.as_deref_mut() {
                    load.look();
                }
                if let Some(tracer) = &mut tracer {
                    tracer.look();
                }
                let (places, now) = (watched_sides.places(), Instant::now());
                if watched_sides.control().is_some_and(|control| shares.starve(control, now)) {
                    watchdog.starved(now);
                }
                let reports = (0..2).any(|side| open[side] && places.1[side].0 == Step::Reports as u32);
                if watchdog.hangs(places, reports, now) {
                    let last_seen = watched_sides.last_seen();
                    self.end();
                    return Ok(Home::Ended(Report::Hung { last_seen, at: None }));
                }
            }
        }
        for process in self.processes.drain(..) {
            waitpid(Some(process), WaitOptions::empty())?;
        }
        Ok(Home::Came { texts, interrupted, tracer: tracer.map(Box::new) })
    }

    fn cause_of_death(&mut self, role: Role) -> String {
        let index = role.index().min(self.processes.len() - 1);
        let process = self.processes[index];
        let ended = if self.processes.len() > 1 {
            // A side with a process of its own closes its pipe by dying, however long that takes.
            waitpid(Some(process), WaitOptions::empty())
        } else {
            // One that was a thread may leave its process, with the other side in it, alive: the wait must end.
            await_death(process, PATIENCE)
        };
        if !matches!(ended, Ok(None)) {
            self.processes.remove(index);
        }
        match ended {
            Ok(Some((_, status))) if status.signaled() => format!(
                "the {} was killed by signal {}",
                role.name(),
                status.terminating_signal().unwrap_or_default()
            ),
            Ok(Some((_, status))) if status.exit_status() == Some(NO_THREAD) => {
                let error = no_task::explained(&io::ErrorKind::WouldBlock.into());
                format!("two threads are needed and one cannot be started: {error}")
            }
            Ok(Some((_, status))) => {
                format!("the {} left without a report, exit status {:?}", role.name(), status.exit_status())
            }
            Ok(None) => format!("the {} ended without a report, its process did not", role.name()),
            Err(_) => format!("the {} is gone", role.name()),
        }
    }

    /// Kills what is left and waits for it.
    fn end(&mut self) {
        for process in self.processes.drain(..) {
            // An error means that it is gone already.
            let _ = kill_process(process, Signal::KILL);
            let _ = waitpid(Some(process), WaitOptions::empty());
        }
    }
}

/// Waits for the death of `process`, for `limit` at most.
fn await_death(process: Pid, limit: Duration) -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    let start = Instant::now();
    loop {
        let ended = waitpid(Some(process), WaitOptions::NOHANG)?;
        if ended.is_some() || start.elapsed() > limit {
            return Ok(ended);
        }
        std::thread::sleep(OBITUARY_LOOK);
    }
}

/// One side's whole life, and its report into `pipe`.
fn act(life: &(dyn Fn(Role) -> Vec<u8> + Sync), role: Role, pipe: impl AsFd) {
    let report = life(role);
    let mut rest = report.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(&pipe, rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

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
use super::order::{Order, REPORT, Report};
use super::part::Role;
use super::run_dir::RunDir;
use super::shares::Shares;
use super::side::{Side, SideReport};
use super::tracer::Tracer;
use super::watchdog::Watchdog;
use crate::entry::Links;
use crate::futex::FutexLink;
use crate::mechanism::Link;
use crate::site::Site;
use doorbell_machine::pinned::together;
use doorbell_machine::root::Root;
use doorbell_results::configuration::Configuration;
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
    let report = under_load(&order, families).unwrap_or_else(|cause| Report::Failed { cause });
    let mut line = serde_json::to_vec(&report)?;
    line.push(b'\n');
    io::stdout().write_all(&line)
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

/// Runs the trial, under the load that its configuration asks for.
fn under_load(order: &Order, families: Families) -> Result<Report, String> {
    let hold =
        |limit| LatencyLimit::hold(limit).map_err(|error| format!("{}: {error}", latency_limit::DEVICE));
    // Held until the trial is over: it ends with the value.
    let _held = order.configuration.latency_limit_us.map(hold).transpose()?;
    let Some(load) = &order.configuration.load else { return run(order, families, None) };
    let topology = doorbell_machine::topology::read(&Root::live(), None);
    let mut session = Session::start(load, &topology).map_err(|error| format!("the load: {error}"))?;
    session.begin();
    let mut report = run(order, families, Some(&mut session))?;
    if let Report::Done { load, .. } = &mut report {
        *load = Some(session.end().map_err(|error| format!("the load: {error}"))?);
    }
    Ok(report)
}

fn run(order: &Order, families: Families, load: Option<&mut Session>) -> Result<Report, String> {
    let configuration = &order.configuration;
    // SAFETY: the launcher left this descriptor open for us under this number, and nobody else here owns it.
    let lock = File::from(unsafe { OwnedFd::from_raw_fd(order.lock) });
    let run_dir = RunDir::inherited(order.run_dir.clone(), lock);
    let family = family::of(families, configuration.pattern)
        .ok_or("nothing here runs a configuration of this pattern")?;
    if let Some(fan) = family.fan_out(configuration) {
        return super::fanout::run(order, fan?, &run_dir, load);
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
    let site = Site::new(configuration.contexts, arena, &run_dir);
    let Cast { roles, links, contexts, reference } = family.open(&Stage {
        configuration,
        clock: order.clock,
        site: &site,
        arena,
        control,
        run_dir: &run_dir,
    })?;
    let reference_lines = if reference {
        let link = || FutexLink::open(&site).map_err(|error| error.to_string());
        Some([link()?, link()?])
    } else {
        None
    };
    let side = |role| Side {
        reference_lines,
        journal: journal.clone(),
        ..Side::new(role, order.clock, configuration.clone(), control, payload)
    };
    let mut running =
        RunningSides::fork(contexts, roles, links.as_ref(), &side).map_err(|error| error.to_string())?;
    let tracer = match configuration.trace.zip(journal) {
        Some((trace, journal)) => match Tracer::begin(configuration, trace, order.clock, control, journal) {
            Ok(tracer) => Some(tracer),
            Err(error) => {
                running.end();
                return Err(error.to_string());
            }
        },
        None => None,
    };
    let report = running.watch(control, configuration, roles, load, tracer);
    run_dir.clear_notes();
    report.map_err(|error| error.to_string())
}

/// How a process ends that could not have both of its threads: an error of the system (sysexits(3), `EX_OSERR`).
const NO_THREAD: i32 = 71;

/// The sides at work: their processes and the pipes they report through.
#[derive(Debug)]
struct RunningSides {
    processes: Vec<Pid>,
    pipes: Vec<File>,
}

impl RunningSides {
    fn fork(
        contexts: Contexts,
        roles: [Role; 2],
        links: &dyn Links,
        side: &dyn Fn(Role) -> Side,
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
                    let (write, own) = (pipe()?, side(role));
                    running.processes.push(fork(|| act(links, own, &write))?);
                }
            }
            Contexts::Threads => {
                let sides = roles.map(side);
                let [first, second] = [pipe()?, pipe()?];
                running.processes.push(fork(|| {
                    let [initiator, responder] = sides;
                    let done = together(
                        move || act(links, initiator, &first),
                        move || act(links, responder, &second),
                    );
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
    fn watch(
        mut self,
        control: &Control,
        configuration: &Configuration,
        roles: [Role; 2],
        mut load: Option<&mut Session>,
        mut tracer: Option<Tracer>,
    ) -> io::Result<Report> {
        let patience = PATIENCE + 4 * Duration::from_nanos(configuration.pattern.gap_ns());
        let mut texts = [Vec::new(), Vec::new()];
        let mut open = [true, true];
        let mut interrupted = false;
        let mut watchdog = Watchdog::new(patience, REPORT, control.places(), Instant::now());
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
                control.interrupted.store(1, Relaxed);
            }
            if called && let Some(tracer) = &mut tracer {
                if let Err(error) = tracer.catch() {
                    self.end();
                    return Ok(Report::Failed { cause: error.to_string() });
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
                    let cause = match serde_json::from_slice::<SideReport>(&texts[index]) {
                        Ok(report) => report.error,
                        Err(_) => Some(self.cause_of_death(roles[index])),
                    };
                    if let Some(cause) = cause {
                        self.end();
                        return Ok(Report::Failed { cause });
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
                let (places, now) = (control.places(), Instant::now());
                if shares.starve(control, now) {
                    watchdog.starved(now);
                }
                let reports = (0..2).any(|side| open[side] && places[side].0 == Step::Reports as u32);
                if watchdog.hangs(places, reports, now) {
                    let last_seen = control.last_seen(roles);
                    self.end();
                    return Ok(Report::Hung { last_seen });
                }
            }
        }
        for process in self.processes.drain(..) {
            waitpid(Some(process), WaitOptions::empty())?;
        }
        let sides =
            texts.iter().map(|text| serde_json::from_slice(text)).collect::<Result<Vec<SideReport>, _>>()?;
        let anatomy = match tracer.map(Tracer::end).transpose() {
            Ok(anatomy) => anatomy.map(Box::new),
            Err(error) => return Ok(Report::Failed { cause: error.to_string() }),
        };
        Ok(Report::Done { sides, interrupted, load: None, anatomy })
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

/// One side's whole life.
fn act(links: &dyn Links, side: Side, pipe: impl AsFd) {
    let report = serde_json::to_vec(&side.play(|role, side| links.play(role, side))).unwrap_or_default();
    let mut rest = report.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(&pipe, rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sides at work: how they are started, watched until they are done
//! or stop making progress, and ended.

use super::control::{Control, Step};
use super::fork::fork;
use super::load::session::Session;
use super::no_task;
use super::order::{REPORT, Report};
use super::roles::Role;
use super::shares::Shares;
use super::tracer::Tracer;
use super::watchdog::{Look, Watchdog};
use crate::site::Word;
use doorbell_machine::pinned::together;
use doorbell_results::record::LastSeen;
use doorbell_results::record::subject::Contexts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Without a step forward for this long, plus four gaps, a trial hangs.
/// Longer than any time slice or throttled quota period a busy machine
/// makes a side wait for (CFS bandwidth periods are 100 ms by default).
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the host looks for progress. Its own wake-ups, some 10 µs a second, are part of the
/// interference measured by the null mechanism's maximum.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often the host looks whether the process of a thread that
/// closed its pipe is dead: closing comes before dying.
const OBITUARY_LOOK: Duration = Duration::from_millis(5);

/// How a process ends that could not have both of its threads: an
/// error of the system (sysexits(3), `EX_OSERR`).
const NO_THREAD: i32 = 71;

pub(crate) struct Watched<'host> {
    /// The words of each configuration.
    pub(crate) controls: &'host [&'static Control],
    /// In which of them each side is now; none where there is but one.
    pub(crate) now: Option<&'static [Word; 2]>,
    pub(crate) roles: [Role; 2],
    /// The longest time between two steps that is nobody's fault.
    pub(crate) gap_ns: u64,
    /// What a side's report says of an error; none of what is no report.
    pub(crate) told: &'host dyn Fn(&[u8]) -> Option<Option<String>>,
}

impl Watched<'_> {
    fn now(&self) -> [usize; 2] {
        let last = self.controls.len().saturating_sub(1);
        self.now.map_or([0; 2], |now| now.each_ref().map(|now| (now.load(Relaxed) as usize).min(last)))
    }

    /// The words of the configuration that the side which notifies first is in.
    fn control(&self) -> Option<&'static Control> {
        self.controls.get(self.now()[0]).copied()
    }

    /// Where both sides are: in which configuration, at which step and number.
    fn places(&self) -> ([usize; 2], [(u32, u64); 2]) {
        let now = self.now();
        let place = |side: usize| self.controls.get(now[side]).map(|control| control.places()[side]);
        (now, [0, 1].map(|side| place(side).unwrap_or_default()))
    }

    fn last_seen(&self) -> Vec<LastSeen> {
        let seen = |(side, now): (usize, usize)| {
            Some(self.controls.get(now)?.last_seen(self.roles).swap_remove(side))
        };
        self.now().into_iter().enumerate().filter_map(seen).collect()
    }
}

pub(crate) enum Home {
    Came { texts: [Vec<u8>; 2], interrupted: bool, tracer: Option<Box<Tracer>> },
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
        let mut pipe = || -> io::Result<File> {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            running.pipes.push(File::from(read));
            Ok(File::from(write))
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
                        // SAFETY: ends this process at once, as `fork` does when
                        // its work is done. JUSTIFICATION: `std::process::exit`
                        // would run what the parent has registered for its own end.
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
                watchdog.interrupted(Duration::from_nanos(watched_sides.gap_ns));
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
                let (place, now) = (watched_sides.places(), Instant::now());
                let starves = watched_sides.control().is_some_and(|control| shares.starve(control, now));
                let reports = (0..2).any(|side| open[side] && place.1[side].0 == Step::Reports as u32);
                let found = watchdog.look(Look { place, reports, starves }, now);
                if let Some(report) = found.report(|| watched_sides.last_seen()) {
                    self.end();
                    return Ok(Home::Ended(report));
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
            // One that was a thread may leave its process, with the
            // other side in it, alive: the wait must end.
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

    pub(crate) fn end(&mut self) {
        for process in self.processes.drain(..) {
            // An error means that it is gone already.
            let _ = kill_process(process, Signal::KILL);
            let _ = waitpid(Some(process), WaitOptions::empty());
        }
    }
}

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
fn act(life: &(dyn Fn(Role) -> Vec<u8> + Sync), role: Role, mut pipe: &File) {
    // Of a host that is gone nobody hears.
    let _ = pipe.write_all(&life(role));
}

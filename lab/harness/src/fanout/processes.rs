// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a fan-out in processes of its own: one for each receiver and
//! the notifier, or one for all as threads.
//!
//! ```text
//! doorbell ──exec──► host ──fork──► receiver 0, 1, 2, …
//!                         └─fork──► notifier
//! ```
//!
//! A receiver is a bare fork of the host: it maps what the host has mapped and has no histogram of
//! its own. It makes its object, says so, and waits. The notifier begins when all stand ready and
//! the host has measured their memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process, setrlimit, waitpid,
};

use super::fan::{FanEntry, FanOutContext, OpenFan};
use super::table::Table;
use super::{
    EACH, LOOK_EVERY, PATIENCE, READY_EVERY, REPORT_EACH, STACK, gather, last_seen, memory, part, progress,
};
use crate::arena::Arena;
use crate::control::Step;
use crate::fork::fork;
use crate::load::session::Session;
use crate::order::{REPORT, Report};
use crate::run_dir::RunDir;
use crate::side::{SideReport, pin};
use crate::site::Site;
use crate::watchdog::{Look, Watchdog};
use doorbell_machine::root::Root;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::pinning::{Pinning, Spread};
use doorbell_results::record::subject::Contexts;

/// What is said of a call that failed.
fn failed<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> String {
    move |cause| format!("{call} failed: {}", cause.into())
}

/// The same of a receiver for whom there is no process or thread.
fn not_started(number: u32, all: u32, cause: &io::Error) -> String {
    format!(
        "receiver {number} of {all} could not be started: {cause}; raise `ulimit -u` and the pids \
         limit of the control group, or use fewer receivers"
    )
}

pub(crate) fn run(
    clock: Clock,
    configuration: &Configuration,
    entry: &FanEntry,
    run_dir: &RunDir,
    load: Option<&mut Session>,
) -> Result<Report, String> {
    let part = part(clock, configuration, entry)?;
    let topology = doorbell_machine::topology::read(&Root::live(), None);
    let pinning = Pinning::named(&configuration.placement.relation)
        .ok_or_else(|| format!("no way of pinning is called '{}'", configuration.placement.relation))?;
    let spread = pinning.spread(part.receivers, &topology)?;
    allow_descriptors((entry.needs)(part.receivers.into()).descriptors)
        .map_err(failed("setrlimit(RLIMIT_NOFILE)"))?;

    // The table, and a few pairs of cache lines for each receiver's object.
    let size = Table::bytes(&part, configuration.size) + part.receivers as usize * 1024 + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let table = Table::place(arena, part, configuration.size).map_err(|error| error.to_string())?;
    let site = Site::new(configuration.contexts, arena, run_dir);
    let fan = (entry.open)(&site, &FanOutContext { receivers: part.receivers, clock })
        .map_err(|error| error.to_string())?;
    let before = memory::of_kernel(&Root::live());
    let mut running = RunningReceivers::start(configuration.contexts, &table, fan.as_ref(), spread.as_ref())?;
    let outcome = running.watch(&table, before, spread.as_ref(), load);
    running.end();
    outcome
}

/// Raises the soft limit of open files as far as it may be raised
/// without privilege, if `needed` ask for it.
pub fn allow_descriptors(needed: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed + 64) {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(())
}

/// One receiver's whole life; what goes wrong is said through `complaints`.
fn receive(number: u32, cpu: Option<u32>, table: &Table, fan: &dyn OpenFan, complaints: impl AsFd) {
    if let Err(error) = cpu.map_or(Ok(()), pin).and_then(|()| fan.receive(number, table)) {
        // One short write is whole (pipe(7), PIPE_BUF); if it fails, the early exit tells the host.
        let _ = rustix::io::write(complaints, format!("receiver {number}: {error}\n").as_bytes());
    }
}

/// The notifier's whole life; it brings home the reports of all.
fn notify(cpu: Option<u32>, table: &Table, fan: &dyn OpenFan, complaints: impl AsFd, mut home: &File) {
    match cpu.map_or(Ok(()), pin).and_then(|()| fan.notify(table)) {
        Ok(notified) => {
            table.control.progress.step.store(Step::Reports as u32, Relaxed);
            let text = serde_json::to_vec(&gather::reports(&notified, table)).unwrap_or_default();
            // Of a host that is gone nobody hears.
            let _ = home.write_all(&text);
        }
        Err(error) => {
            let _ = rustix::io::write(complaints, format!("the notifier: {error}\n").as_bytes());
        }
    }
}

/// Everybody at work, and how the host hears of them.
#[derive(Debug)]
struct RunningReceivers {
    /// Processes by number, with what they are.
    processes: BTreeMap<i32, String>,
    home: File,
    complaints: File,
    deaths: OwnedFd,
}

impl RunningReceivers {
    fn start(
        contexts: Contexts,
        table: &Table,
        fan: &dyn OpenFan,
        spread: Option<&Spread>,
    ) -> Result<Self, String> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failed("pipe2"));
        let ((home, homeward), (complaints, complain)) = (pipe()?, pipe()?);
        let homeward = File::from(homeward);
        let deaths = deaths().map_err(failed("signalfd"))?;
        let mut running = Self {
            processes: BTreeMap::new(),
            home: File::from(home),
            complaints: File::from(complaints),
            deaths,
        };
        let all = table.part.receivers;
        let cpu = |number: u32| spread.map(|spread| spread.receivers[number as usize]);
        let notifier_cpu = spread.map(|spread| spread.notifier);
        match contexts {
            Contexts::Processes => {
                for number in 0..all {
                    let child = fork(|| receive(number, cpu(number), table, fan, &complain));
                    let child = child.map_err(|cause| {
                        running.end();
                        not_started(number, all, &cause)
                    })?;
                    running.add(child, format!("receiver {number}"));
                }
                let child = fork(|| notify(notifier_cpu, table, fan, &complain, &homeward));
                running.add(child.map_err(failed("fork"))?, "the notifier".to_owned());
            }
            Contexts::Threads => {
                let child = fork(|| threads(table, fan, &cpu, notifier_cpu, &complain, &homeward));
                running.add(child.map_err(failed("fork"))?, "the process of all threads".to_owned());
            }
        }
        // The writing ends end here with their names: from now on the
        // end of a pipe is the end of those who write to it.
        drop((homeward, complain));
        Ok(running)
    }

    fn add(&mut self, child: Pid, who: String) {
        self.processes.insert(child.as_raw_nonzero().get(), who);
    }

    /// Lets the rounds begin when all stand ready, and gathers the
    /// reports, or finds out why there are none.
    fn watch(
        &mut self,
        table: &Table,
        kernel_before: u64,
        spread: Option<&Spread>,
        mut load: Option<&mut Session>,
    ) -> Result<Report, String> {
        let all = table.part.receivers;
        let patience = PATIENCE + EACH * all + 4 * Duration::from_nanos(table.part.interval_ns);
        let rounds = u32::try_from(table.part.all_rounds()).unwrap_or(u32::MAX);
        let report = REPORT + REPORT_EACH.saturating_mul(rounds.saturating_mul(all));
        let stdin = io::stdin();
        let (mut interrupted, mut memory) = (false, None);
        let mut watchdog = Watchdog::new(patience, report, progress(table), Instant::now());
        let mut text = Vec::new();
        loop {
            // Pairs with the Release increments of the receivers.
            if memory.is_none() && table.control.ready.load(Acquire) == all {
                let pids = self.processes.keys().copied().collect::<BTreeSet<i32>>();
                memory = Some(memory::of(&Root::live(), &pids, kernel_before));
                // Until they are told to go, which is now, all stand still.
                watchdog.calm(Instant::now());
                // Pairs with the Acquire load in `notify`.
                table.control.go.store(1, Release);
            }
            let look = if memory.is_some() { LOOK_EVERY } else { READY_EVERY };
            let timeout = Timespec { tv_sec: look.as_secs() as i64, tv_nsec: look.subsec_nanos().into() };
            let mut watched = vec![
                PollFd::new(&self.home, PollFlags::IN),
                PollFd::new(&self.complaints, PollFlags::IN),
                PollFd::new(&self.deaths, PollFlags::IN),
            ];
            if !interrupted {
                watched.push(PollFd::new(&stdin, PollFlags::IN));
            }
            let number = poll(&mut watched, Some(&timeout)).map_err(failed("poll"))?;
            let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
            if let (0, Some(load)) = (number, load.as_deref_mut()) {
                load.look();
            }
            if ready.get(3) == Some(&true) {
                interrupted = true;
                table.control.interrupted.store(1, Relaxed);
                watchdog.interrupted(Duration::from_nanos(table.part.interval_ns));
            }
            if ready[0] {
                let mut buffer = [0; 1 << 16];
                let length = self.home.read(&mut buffer).map_err(failed("read"))?;
                text.extend_from_slice(&buffer[..length]);
                watchdog.calm(Instant::now());
                if length > 0 {
                    continue;
                }
                return Ok(match serde_json::from_slice::<Vec<SideReport>>(&text) {
                    Ok(mut sides) => {
                        if let Some(fanout) = sides.iter_mut().find_map(|side| side.fanout.as_mut()) {
                            fanout.notifier_cpu = spread.map(|spread| spread.notifier);
                            fanout.receiver_cpus = spread.map(Spread::receiver_cpus);
                            fanout.memory = memory;
                        }
                        Report::Done { sides, interrupted, load: None, anatomy: None }
                    }
                    Err(error) => {
                        let cause = self.cause_of_end(table)?;
                        Report::Failed {
                            cause: cause.unwrap_or_else(|| no_report(text.len(), &error)),
                            at: None,
                        }
                    }
                });
            }
            if ready[1]
                && let Some(cause) = self.complaint()?
            {
                return Ok(Report::Failed { cause, at: None });
            }
            if ready[2]
                && let Some(cause) = self.first_death(table)?
            {
                return Ok(Report::Failed { cause, at: None });
            }
            let place = progress(table);
            let look = Look { place, reports: place.0 == Step::Reports as u32, starves: false };
            if let Some(report) = watchdog.look(look, Instant::now()).report(|| last_seen(table)) {
                return Ok(report);
            }
        }
    }

    /// What somebody says who cannot go on; none when all writers have gone.
    fn complaint(&mut self) -> Result<Option<String>, String> {
        let mut buffer = [0; 4096];
        let length = self.complaints.read(&mut buffer).map_err(failed("read"))?;
        if length == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&buffer[..length]);
        Ok(text.lines().next().map(str::to_owned))
    }

    /// Buries the dead; the cause of the first death that nobody asked for.
    fn first_death(&mut self, table: &Table) -> Result<Option<String>, String> {
        // What is told of many deaths may be merged into one: the signals only say that it is time to look.
        let mut signals = [0; 128 * size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.deaths, &mut signals) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(failed("read")(error)),
        }
        let mut cause = None;
        while let Ok(Some((pid, status))) = waitpid(None, WaitOptions::NOHANG) {
            let unexpected = self.bury(pid, status, table);
            cause = cause.or(unexpected);
        }
        // Who could say why has said it before it left.
        if cause.is_some()
            && let Some(said) = self.last_words()?
        {
            cause = Some(said);
        }
        Ok(cause)
    }

    /// Why all have closed the pipe of the reports without one; none if all deaths were asked for.
    ///
    /// Everybody holds the pipe until it dies, so all are dying, however long that takes.
    fn cause_of_end(&mut self, table: &Table) -> Result<Option<String>, String> {
        let mut cause = None;
        for pid in self.processes.keys().copied().collect::<Vec<i32>>() {
            let dead = waitpid(Pid::from_raw(pid), WaitOptions::empty()).map_err(failed("waitpid"))?;
            let unexpected = dead.and_then(|(pid, status)| self.bury(pid, status, table));
            cause = cause.or(unexpected);
        }
        Ok(self.last_words()?.or(cause))
    }

    /// Strikes a dead process off; the cause of its death if nobody asked for it.
    fn bury(&mut self, pid: Pid, status: WaitStatus, table: &Table) -> Option<String> {
        let who = self.processes.remove(&pid.as_raw_nonzero().get());
        let who = who.unwrap_or_else(|| "a load worker".to_owned());
        let asked_for = table.control.stop.load(Acquire) != 0 && status.exit_status() == Some(0);
        (!asked_for).then(|| match status.terminating_signal() {
            Some(signal) => format!("{who} was killed by signal {signal}"),
            None => format!("{who} left before the end, exit status {:?}", status.exit_status()),
        })
    }

    /// A complaint that is there already.
    fn last_words(&mut self) -> Result<Option<String>, String> {
        let mut watched = [PollFd::new(&self.complaints, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let there = poll(&mut watched, Some(&now)).map_err(failed("poll"))? > 0;
        if there { self.complaint() } else { Ok(None) }
    }

    fn end(&mut self) {
        for pid in self.processes.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            // An error means that it is gone already.
            let _ = kill_process(pid, Signal::KILL);
        }
        for pid in std::mem::take(&mut self.processes).into_keys().filter_map(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// What is wrong when all have ended as asked, and `length` bytes came home that are no report.
fn no_report(length: usize, error: &serde_json::Error) -> String {
    format!("the notifier ended without a whole report: {length} bytes came home, {error}")
}

/// All receivers and the notifier as threads of this process.
fn threads(
    table: &Table,
    fan: &dyn OpenFan,
    cpu: &(dyn Fn(u32) -> Option<u32> + Sync),
    notifier_cpu: Option<u32>,
    complaints: &OwnedFd,
    home: &File,
) {
    std::thread::scope(|scope| {
        for number in 0..table.part.receivers {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let started =
                thread.spawn_scoped(scope, move || receive(number, cpu(number), table, fan, complaints));
            if let Err(cause) = started {
                let told = not_started(number, table.part.receivers, &cause);
                let _ = rustix::io::write(complaints, format!("{told}\n").as_bytes());
                // Those who run already wait for a notifier that will not come: the host ends them.
                return;
            }
        }
        notify(notifier_cpu, table, fan, complaints, home);
    });
}

/// A descriptor that tells of ended children. The signal stays
/// blocked in the children, which have none.
fn deaths() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used, and all pointers live through
    // the calls. JUSTIFICATION: rustix has neither signal sets nor signalfd.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a fan-out would have gone on for ever: the death was one
    /// that had been asked for, and no report could come.
    #[test]
    fn a_notifier_that_ends_as_asked_without_a_whole_report_fails_its_trial() {
        for said in ["", "[{\"series\":"] {
            let table = Table::sample(1, 1, false);
            let [(home, homeward), (complaints, _none), (deaths, _no_signal)] =
                [(); 3].map(|()| rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap());
            // One short write is whole (pipe(7), PIPE_BUF), and the child does nothing else.
            let notifier = fork(|| {
                table.control.stop.store(1, Release);
                table.control.progress.step.store(Step::Reports as u32, Relaxed);
                let _ = rustix::io::write(&homeward, said.as_bytes());
            });
            drop(homeward);
            let mut running = RunningReceivers {
                processes: BTreeMap::new(),
                home: File::from(home),
                complaints: File::from(complaints),
                deaths,
            };
            running.add(notifier.unwrap(), "the notifier".to_owned());
            let report = running.watch(&table, 0, None, None).unwrap();
            let Report::Failed { cause, .. } = report else { panic!("{report:?}") };
            assert!(cause.contains(&format!("without a whole report: {} bytes", said.len())), "{cause}");
            assert!(running.processes.is_empty());
        }
    }
}

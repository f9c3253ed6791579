// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a fan-out as threads of this process: where there is no fork.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::fan::{FanEntry, Hall, OpenFan};
use super::table::Table;
use super::{
    EACH, LOOK_EVERY, PATIENCE, READY_EVERY, REPORT_EACH, STACK, complete, gather, last_seen, part, progress,
};
use crate::arena::Arena;
use crate::control::Step;
use crate::order::{REPORT, Report};
use crate::run_dir::RunDir;
use crate::side::{SideError, SideReport, pin};
use crate::site::Site;
use crate::watchdog::Watchdog;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::pinning::Pinning;

/// What the notifier brings home, or why somebody cannot go on.
type Told = Result<Vec<SideReport>, String>;

/// Runs the fan-out that `configuration` asks for.
pub(crate) fn run(
    clock: Clock,
    configuration: &Configuration,
    entry: &dyn FanEntry,
    run_dir: &RunDir,
) -> Result<Report, String> {
    let part = part(clock, configuration, entry)?;
    let pinning = Pinning::named(&configuration.placement.relation)
        .ok_or_else(|| format!("no way of pinning is called '{}'", configuration.placement.relation))?;
    let topology = doorbell_machine::system::topology();
    let spread = pinning.spread(part.receivers, &topology).map_err(|lack| lack.to_string())?;
    // As in a host of processes.
    let size = Table::bytes(&part, configuration.size) + part.receivers as usize * 1024 + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let table = Table::place(arena, part, configuration.size).map_err(|error| error.to_string())?;
    // Never given back: whoever hangs still holds them when the host leaves.
    let table: &'static Table = Box::leak(Box::new(table));
    let site = Site::new(configuration.contexts, arena, run_dir);
    let fan =
        entry.open(&site, &Hall { receivers: part.receivers, clock }).map_err(|error| error.to_string())?;
    let fan: &'static dyn OpenFan = Box::leak(fan);
    crate::input::when_input_ends(|| table.control.interrupted.store(1, Relaxed));

    let (tell, hear) = channel();
    let mut receivers = Vec::with_capacity(part.receivers as usize);
    for number in 0..part.receivers {
        let cpu = spread.as_ref().map(|spread| spread.receivers[number as usize]);
        let act = move || {
            let shared = table.part.shared;
            if shared { fan.receive_shared(number, table) } else { fan.receive(number, table) }
                .map(|()| Vec::new())
        };
        let who = format!("receiver {number}");
        let started = start(who.clone(), cpu, tell.clone(), act);
        receivers.push(started.map_err(|error| {
            let all = part.receivers;
            format!("{who} of {all} could not be started: {error}; use fewer receivers")
        })?);
    }
    let cpu = spread.as_ref().map(|spread| spread.notifier);
    let act = move || {
        let notified = fan.notify(table)?;
        table.control.progress.step.store(Step::Reports as u32, Relaxed);
        Ok(gather::reports(&notified, table))
    };
    start("the notifier".to_owned(), cpu, tell, act)
        .map_err(|error| format!("the notifier could not be started: {error}"))?;

    let patience = PATIENCE + EACH * part.receivers + 4 * Duration::from_nanos(part.interval_ns);
    let rounds = u32::try_from(part.all_rounds()).unwrap_or(u32::MAX);
    let report = REPORT + REPORT_EACH.saturating_mul(rounds.saturating_mul(part.receivers));
    let mut watchdog = Watchdog::new(patience, report, progress(table), Instant::now());
    let mut gone = false;
    loop {
        // Pairs with the Release increments of the receivers.
        if !gone && table.control.ready.load(Acquire) == part.receivers {
            gone = true;
            watchdog.calm(Instant::now());
            // Pairs with the Acquire load in `notify`.
            table.control.go.store(1, Release);
        }
        match hear.recv_timeout(if gone { LOOK_EVERY } else { READY_EVERY }) {
            Ok(Ok(sides)) if sides.is_empty() => {}
            Ok(Ok(mut sides)) => {
                complete(&mut sides, spread.as_ref(), None);
                let interrupted = table.control.interrupted.load(Relaxed) != 0;
                // All have left their loops, which the notifier waited for.
                receivers.into_iter().for_each(|receiver| drop(receiver.join()));
                return Ok(Report::Done { sides, interrupted, load: None, anatomy: None });
            }
            Ok(Err(cause)) => return Ok(Report::Failed { cause, at: None }),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err("all threads left without a report".to_owned());
            }
        }
        let places = progress(table);
        if watchdog.hangs(places, places.0 == Step::Reports as u32, Instant::now()) {
            return Ok(Report::Hung { last_seen: last_seen(table), at: None });
        }
    }
}

/// Starts a thread that is kept on `cpu`, does `act`, and tells what came of it.
fn start(
    who: String,
    cpu: Option<u32>,
    tell: Sender<Told>,
    act: impl FnOnce() -> Result<Vec<SideReport>, SideError> + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    Builder::new().stack_size(STACK).spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| cpu.map_or(Ok(()), pin).and_then(|()| act())));
        let told = match done {
            Ok(done) => done.map_err(|error| format!("{who}: {error}")),
            Err(_) => Err(format!("{who} panicked")),
        };
        // The host that does not listen any more has its answer.
        let _ = tell.send(told);
    })
}

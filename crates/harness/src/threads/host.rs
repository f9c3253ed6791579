// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host of one trial where there is no fork: its sides are its own threads.
//!
//! The command keeps the host's input open; that it ends is how the user interrupts, and how a host hears that its command is gone. A
//! host whose sides hang leaves with them.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::arena::Arena;
use super::control::{Control, Step};
use super::family::{self, Cast, Families, Stage};
use super::load::session::Session;
use super::order::{Order, REPORT, Report, Task};
use super::part::Role;
use super::run_dir::RunDir;
use super::side::{Side, SideReport};
use super::watchdog::Watchdog;
use crate::entry::Links;
use crate::input::when_input_ends;
use crate::site::Site;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::subject::Contexts;

/// Without a step forward for this long, plus four gaps, a trial hangs; as in a host of processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the host looks for progress.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs the trial ordered on standard input and reports on standard output; the whole life of a host process.
pub fn main(families: Families) -> io::Result<()> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    let report = under_load(&order, families).unwrap_or_else(|cause| Report::Failed { cause, at: None });
    let mut line = serde_json::to_vec(&report)?;
    line.push(b'\n');
    #[expect(clippy::disallowed_methods, reason = "the command reads it, and not a person")]
    let mut out = io::stdout();
    out.write_all(&line)?;
    out.flush()?;
    // Sides that hang are threads of this process: it does not wait for them.
    std::process::exit(0)
}

/// Runs the trial, under the load that its configuration asks for.
fn under_load(order: &Order, families: Families) -> Result<Report, String> {
    let Task::Trial(configuration) = &order.task;
    let Some(load) = &configuration.load else { return run(order.clock, configuration, families) };
    let topology = doorbell_machine::system::topology();
    let mut session = Session::start(load, &topology).map_err(|error| format!("the load: {error}"))?;
    session.begin();
    let mut report = run(order.clock, configuration, families)?;
    if let Report::Done { load, .. } = &mut report {
        *load = Some(session.end().map_err(|error| format!("the load: {error}"))?);
    }
    Ok(report)
}

fn run(clock: Clock, configuration: &Configuration, families: Families) -> Result<Report, String> {
    if configuration.trace.is_some() || configuration.latency_limit_us.is_some() {
        return Err("traced events and limits of idle states are had on Linux alone so far".to_owned());
    }
    if configuration.contexts != Contexts::Threads {
        return Err("here both sides are threads of one process: --contexts threads".to_owned());
    }
    let run_dir = RunDir::here();
    let family = family::of(families, configuration.pattern)
        .ok_or("nothing here runs a configuration of this pattern")?;
    if let Some(fan) = family.fan_out(configuration) {
        return super::fanout::run(clock, configuration, fan?, &run_dir);
    }
    let message = family.message_bytes(configuration);
    // As in a host of processes.
    let size = size_of::<Control>() + family.own_bytes(configuration) + 2 * (message + 4096) + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let control = Control::place(arena).map_err(|error| error.to_string())?;
    let bytes = || arena.bytes(message).map_err(|error| error.to_string());
    let payload = [bytes()?, bytes()?];
    let site = Site::new(configuration.contexts, arena, &run_dir);
    let stage = Stage { configuration, clock, site: &site, arena, control, run_dir: &run_dir };
    let Cast { roles, links, .. } = family.open(&stage)?;
    when_input_ends(|| control.interrupted.store(1, Relaxed));
    // Never given back: a side that hangs still holds it when the host leaves.
    let links: &'static dyn Links = Box::leak(links);
    let side = |role| Side::new(role, clock, configuration.clone(), control, payload);
    play(roles, links, &side, control, configuration.pattern.gap_ns())
}

/// Plays both sides and gathers their reports, or finds out why there are none.
fn play(
    roles: [Role; 2],
    links: &'static dyn Links,
    side: &dyn Fn(Role) -> Side,
    control: &'static Control,
    gap_ns: u64,
) -> Result<Report, String> {
    let (tell, hear) = channel();
    for role in roles {
        let (side, tell) = (side(role), tell.clone());
        let act = move || {
            let report = catch_unwind(AssertUnwindSafe(|| side.play(|role, side| links.play(role, side))));
            // The host that does not listen any more has its answer.
            let _ = tell.send((role.index(), report.map_err(|_| format!("the {} panicked", role.name()))));
        };
        Builder::new()
            .spawn(act)
            .map_err(|error| format!("two threads are needed and one cannot be started: {error}"))?;
    }
    let patience = PATIENCE + 4 * Duration::from_nanos(gap_ns);
    let mut watchdog = Watchdog::new(patience, REPORT, control.places(), Instant::now());
    let mut home: [Option<SideReport>; 2] = [None, None];
    while home.iter().any(Option::is_none) {
        match hear.recv_timeout(LOOK_EVERY) {
            Ok((index, report)) => {
                let report = report?;
                if let Some(cause) = &report.error {
                    // Without this one, the other side would wait until patience runs out.
                    return Ok(Report::Failed { cause: cause.clone(), at: None });
                }
                home[index] = Some(report);
                watchdog.calm(Instant::now());
            }
            Err(RecvTimeoutError::Timeout) => {
                let places = control.places();
                let reports =
                    (0..2).any(|side| home[side].is_none() && places[side].0 == Step::Reports as u32);
                if watchdog.hangs(places, reports, Instant::now()) {
                    return Ok(Report::Hung { last_seen: control.last_seen(roles), at: None });
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err("both sides left without a report".to_owned()),
        }
    }
    let interrupted = control.interrupted.load(Relaxed) != 0;
    Ok(Report::Done { sides: home.into_iter().flatten().collect(), interrupted, load: None, anatomy: None })
}

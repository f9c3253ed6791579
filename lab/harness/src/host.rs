// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host of one trial: opens the links, forks the sides, sleeps
//! until they are done or stop making progress.

use super::arena::Arena;
use super::control::Control;
use super::family::{self, Families, OpenedSides};
use super::fork::die_with_parent;
use super::journal::Journal;
use super::latency_limit::{self, LatencyLimit};
use super::load::session::Session;
use super::opened::{Opened, open};
use super::order::{Order, Report, Task};
use super::run_dir::RunDir;
use super::running::{Home, RunningSides, Watched};
use super::side::{Side, SideReport};
use super::tracer::Tracer;
use crate::site::Site;
use doorbell_machine::root::Root;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use rustix::process::Pid;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

/// Runs the trial ordered on standard input and reports on standard
/// output; the whole life of a host process.
pub fn main(families: Families) -> io::Result<()> {
    // Its own process group: Ctrl-C at a terminal is for the command, which then asks for an early end.
    rustix::process::setpgid(None, None)?;
    let order: Order = read_line(&mut io::stdin())?;
    if !Pid::from_raw(order.parent).is_some_and(die_with_parent) {
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
    // SAFETY: the launcher left this descriptor open for us under
    // this number, and nobody else here owns it.
    let lock = File::from(unsafe { OwnedFd::from_raw_fd(order.lock) });
    let run_dir = RunDir::inherited(order.run_dir.clone(), lock);
    let configuration = match &order.task {
        Task::Trial(configuration) => configuration,
        Task::Bench(bench) => return super::bench::run(order, bench, families, &run_dir),
        Task::OneByOne(all) => return super::one_by_one::run(order, all, families, &run_dir),
    };
    let hold =
        |limit| LatencyLimit::hold(limit).map_err(|error| format!("{}: {error}", latency_limit::DEVICE));
    // Held until the trial is over: it ends with the value.
    let _held = configuration.latency_limit_us.map(hold).transpose()?;
    let Some(load) = &configuration.load else {
        return trial(order.clock, configuration, families, &run_dir, None);
    };
    let topology = doorbell_machine::topology::read(&Root::live(), None);
    let mut session = Session::start(load, &topology).map_err(|error| format!("the load: {error}"))?;
    session.begin();
    let mut report = trial(order.clock, configuration, families, &run_dir, Some(&mut session))?;
    if let Report::Done { load, .. } = &mut report {
        *load = Some(session.end().map_err(|error| format!("the load: {error}"))?);
    }
    Ok(report)
}

fn trial(
    clock: Clock,
    configuration: &Configuration,
    families: Families,
    run_dir: &RunDir,
    load: Option<&mut Session>,
) -> Result<Report, String> {
    let family = family::of(families, configuration.pattern)
        .ok_or("nothing here runs a configuration of this pattern")?;
    if let Some(fan) = family.fan_out(configuration) {
        let report = super::fanout::run(clock, configuration, fan?, run_dir, load);
        run_dir.clear_notes();
        return report;
    }
    let (message, words) = (family.message_bytes(configuration), family.own_bytes(configuration));
    // Control words, payloads both ways with their alignment, and room for the mechanisms' own words.
    let traced = if configuration.trace.is_some() { Journal::BYTES } else { 0 };
    let size = size_of::<Control>() + words + traced + 2 * (message + 4096) + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let journal = configuration.trace.map(|_| Journal::place(arena)).transpose();
    let journal = journal.map_err(|error| error.to_string())?;
    let site = Site::new(configuration.contexts, arena, run_dir);
    let Opened { control, payload, sides: OpenedSides { roles, links, contexts } } =
        open(clock, configuration, families, arena, &site, run_dir)?;
    let life = |role| {
        let side = Side {
            journal: journal.clone(),
            ..Side::new(role, clock, configuration.clone(), control, payload)
        };
        serde_json::to_vec(&side.run_role(|role, side| links.run_role(role, side))).unwrap_or_default()
    };
    let mut running = RunningSides::fork(contexts, roles, &life).map_err(|error| error.to_string())?;
    let traced = configuration.trace.zip(journal.clone());
    let tracer = traced.map(|(trace, journal)| Tracer::begin(configuration, trace, clock, control, journal));
    let tracer = tracer.transpose().map_err(|error| {
        running.end();
        error.to_string()
    })?;
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

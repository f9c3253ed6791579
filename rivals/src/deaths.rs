// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long after the kernel knows of a death the survivor is told.
//!
//! A child joins and sends one message; a thread of the parent receives it and sleeps in the next
//! receive; the child is killed. The survivor reads the clock when its receive has returned. Two
//! other readings stand for the kernel's knowledge: one just before `kill`, which is earlier than
//! any knowledge and hence an upper bound, and one when `poll` says that the child's pidfd is
//! readable. The socket hangs up before the pidfd becomes readable, and `poll` has a wake-up of its
//! own: the difference to the second reading can be negative.

use crate::raw::Raw;
use crate::statistics::quantile;
use crate::table::Table;
use anyhow::{Context, ensure};
use doorbell::channel::{Lanes, Receiver, RecvError, Sender};
use doorbell::rendezvous::{Connection, Offer, Segment, inherited};
use doorbell::wait::{Adaptive, Eventfd, Futex, Wait};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    /// The one who dies, as this program calls itself.
    #[arg(long, hide = true)]
    child: bool,
}

/// Of 100 survivors 99 are told so soon after the kernel knows, which
/// is after the process was taken down.
const P99_AT_MOST_NS: f64 = 10e6;

/// Three ways of sleeping. False if one of them missed the bar.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.child {
        return child();
    }
    let (deaths, mut raw) = (arguments.common.rounds_or(300), Raw::new(arguments.common.raw.as_deref())?);
    println!("{deaths} deaths for each row; microseconds\n");
    let heads = ["asleep in", "since", ">p50", ">p90", ">p99", ">p99.9", ">max", "99 % within 10 ms"];
    let mut table = Table::new(heads);
    let mut held = true;
    for (name, die) in [
        (Futex::NAME, die::<Futex> as Death),
        (Eventfd::NAME, die::<Eventfd>),
        (Adaptive::NAME, die::<Adaptive>),
    ] {
        if !arguments.common.wants(name) {
            continue;
        }
        let (mut since_kill, mut since_pidfd) = (Vec::new(), Vec::new());
        for round in 0..deaths {
            let (kill, pidfd) = die()?;
            raw.line(
                &json!({ "asleep_in": name, "round": round, "since_kill_ns": kill, "since_pidfd_ns": pidfd }),
            )?;
            since_kill.push(kill);
            since_pidfd.push(pidfd);
        }
        let in_time = quantile(&mut since_pidfd, 0.99) <= P99_AT_MOST_NS;
        held &= in_time;
        for (since, times, verdict) in [
            ("kill", &mut since_kill, ""),
            ("pidfd", &mut since_pidfd, if in_time { "held" } else { "**missed**" }),
        ] {
            let figures = [0.5, 0.9, 0.99, 0.999, 1.0].map(|q| format!("{:.1}", quantile(times, q) / 1000.0));
            let what = [name, since].map(str::to_owned);
            table.row(what.into_iter().chain(figures).chain([verdict.to_owned()]));
        }
    }
    println!("{table}");
    Ok(held)
}

/// How many nanoseconds after the kill, and after the pidfd was seen
/// readable, the survivor was told.
type Death = fn() -> anyhow::Result<(f64, f64)>;

fn child() -> anyhow::Result<bool> {
    let connection: Connection = inherited::join()?;
    let mut sender: Sender = Sender::attach_waiting_by(&connection, 0)?;
    sender.send(b"here")?;
    loop {
        thread::park();
    }
}

fn die<W: Wait + Default + 'static>() -> anyhow::Result<(f64, f64)> {
    let lanes = Lanes::new(1, 1, 4096).context("one lane fits")?;
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes))?);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["deaths", "--child"]);
    let offer = inherited::offer(&mut command)?;
    let mut child = command.spawn()?;
    let connection: Connection = offer.meet(&segment, child.id())?;
    let peer = connection.peer().id();
    let mut receiver: Receiver<_, W> = Receiver::attach_waiting_by(&connection, 0)?;
    receiver.recv()?;
    let pid = Pid::from_child(&child);
    let file = pidfd_open(pid, PidfdFlags::empty())?;
    let survivor = thread::spawn(move || {
        let told = receiver.recv().map(drop);
        (Instant::now(), told)
    });
    let wake = &segment.state(lanes.message_bell(0)).context("every lane has its bell")?.record().wake;
    while !wake.has_sleepers() {
        thread::yield_now();
    }
    let killed = Instant::now();
    kill_process(pid, Signal::KILL)?;
    poll(&mut [PollFd::new(&file, PollFlags::IN)], None)?;
    let known = Instant::now();
    let (told, outcome) = survivor.join().map_err(|_| anyhow::Error::msg("the survivor panicked"))?;
    child.wait()?;
    ensure!(outcome == Err(RecvError::PeerGone(peer)), "the survivor was told {outcome:?}");
    Ok((between(killed, told), between(known, told)))
}

/// Nanoseconds from `first` to `second`, which may be earlier.
fn between(first: Instant, second: Instant) -> f64 {
    let nanoseconds = |early: Instant, late: Instant| (late - early).as_nanos() as f64;
    if second >= first { nanoseconds(first, second) } else { -nanoseconds(second, first) }
}

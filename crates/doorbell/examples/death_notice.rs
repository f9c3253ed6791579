// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long after the kernel knows of a death the survivor is told.
//!
//! ```text
//! cargo run --release -p doorbell --example death_notice -- [deaths]
//! ```
//!
//! A child joins and sends one message; a thread of the parent receives it and sleeps in the next receive; the child is
//! killed. The survivor reads the clock when its receive has returned. Two other readings stand for the kernel's
//! knowledge: one just before `kill`, which is earlier than any knowledge and hence an upper bound, and one when `poll`
//! says that the child's pidfd is readable. The socket hangs up before the pidfd becomes readable, and `poll` has a wake-up
//! of its own: the difference to the second reading can be negative.

use doorbell::channel::{Lanes, Receiver, RecvError, Sender};
use doorbell::rendezvous::{Connection, Offer, Segment, inherited};
use doorbell::wait::{Adaptive, Eventfd, Futex, Wait};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// What the child's arguments say.
const CHILD: &str = "--child";

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some(CHILD) {
        return child();
    }
    let deaths = argument.map_or(Ok(1000), |deaths| deaths.parse())?;
    println!("{deaths} deaths for each row; microseconds");
    println!(
        "{:10} {:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>11}",
        "asleep in", "since", "p50", "p90", "p99", "p99.9", "max", "over 10 ms"
    );
    row::<Futex>(deaths)?;
    row::<Eventfd>(deaths)?;
    row::<Adaptive>(deaths)
}

fn child() -> Result<(), Box<dyn Error>> {
    let connection: Connection = inherited::join()?;
    let mut sender: Sender = Sender::attach(&connection, 0)?;
    sender.send(b"here")?;
    loop {
        thread::park();
    }
}

fn row<W: Wait + Default + 'static>(deaths: usize) -> Result<(), Box<dyn Error>> {
    let (mut since_kill, mut since_pidfd) = (Vec::new(), Vec::new());
    for _ in 0..deaths {
        let (kill, pidfd) = die::<W>()?;
        since_kill.push(kill);
        since_pidfd.push(pidfd);
    }
    print(W::NAME, "kill", since_kill);
    print("", "pidfd", since_pidfd);
    Ok(())
}

/// One death. How many nanoseconds after the kill, and after the pidfd was seen readable, the survivor was told.
fn die<W: Wait + Default + 'static>() -> Result<(i64, i64), Box<dyn Error>> {
    let lanes = Lanes::new(1, 1, 4096).ok_or("one lane fits")?;
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes))?);
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(CHILD);
    let offer = inherited::offer(&mut command)?;
    let mut child = command.spawn()?;
    let connection: Connection = offer.meet(&segment, child.id())?;
    let peer = connection.peer().id();
    let mut receiver: Receiver<_, W> = Receiver::attach(&connection, 0)?;
    receiver.recv()?;
    let pid = Pid::from_child(&child);
    let file = pidfd_open(pid, PidfdFlags::empty())?;
    let survivor = thread::spawn(move || {
        let told = receiver.recv().map(drop);
        (Instant::now(), told)
    });
    let wake = &segment.state(lanes.message_bell(0)).ok_or("every lane has its bell")?.record().wake;
    while !wake.has_sleepers() {
        thread::yield_now();
    }
    let killed = Instant::now();
    kill_process(pid, Signal::KILL)?;
    poll(&mut [PollFd::new(&file, PollFlags::IN)], None)?;
    let known = Instant::now();
    let (told, outcome) = survivor.join().map_err(|_| "the survivor panicked")?;
    child.wait()?;
    if outcome != Err(RecvError::PeerGone(peer)) {
        return Err(format!("the survivor was told {outcome:?}").into());
    }
    Ok((between(killed, told), between(known, told)))
}

/// Nanoseconds from `first` to `second`, which may be earlier.
fn between(first: Instant, second: Instant) -> i64 {
    let nanoseconds =
        |early: Instant, late: Instant| i64::try_from((late - early).as_nanos()).unwrap_or(i64::MAX);
    if second >= first { nanoseconds(first, second) } else { -nanoseconds(second, first) }
}

fn print(way: &str, since: &str, mut times: Vec<i64>) {
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).map_or(f64::NAN, |time| *time as f64 / 1000.0)
    };
    let late = times.iter().filter(|time| **time > 10_000_000).count();
    println!(
        "{way:10} {since:12} {:8.1} {:8.1} {:8.1} {:8.1} {:8.1} {late:11}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

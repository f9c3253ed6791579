// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rounds of a trial: a thread waits for each stream, or one loop for all of them.

use super::bench::{Bench, Round, fault};
use super::clock::now_ns;
use crate::mechanism::Fault;
use doorbell::gpu::Events;
use doorbell_harness::control::Step;
use doorbell_harness::side::{Side, SideError};
use doorbell_results::machine::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Kernels before the window.
pub(super) const WARM_UP: u64 = 10;
/// Words that a resident kernel is there for at most.
pub(super) const MOST_WORDS: u32 = 1 << 20;

/// What a trial's rounds are bound to.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) clock: Clock,
    /// Nanoseconds between two kernels of a stream; 0 where one follows the other.
    pub(super) gap_ns: u64,
    pub(super) resident: bool,
    /// How long it is open, nanoseconds; none is until there were enough rounds.
    pub(super) time_ns: Option<u64>,
    /// Rounds at most.
    pub(super) most: u64,
}

impl Window {
    fn now(&self) -> u64 {
        now_ns(self.clock)
    }

    /// Whether it is over at `now`, having begun at `start`.
    fn over(&self, start: u64, now: u64) -> bool {
        self.time_ns.is_some_and(|ns| now.saturating_sub(start) >= ns)
    }

    /// Sleeps until the next kernel is due, if they are not to follow each other.
    fn pace(&self, due: &mut u64) {
        if self.gap_ns > 0 {
            *due += self.gap_ns;
            // The few microseconds of CPU time that this sleep takes stand to every way's account.
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(self.now())));
        }
    }
}

/// Says so when it goes.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// What a thread does that waits beside the side, for kernels of a stream of its own.
fn beside(window: Window, mut bench: Bench, stop: &AtomicBool) -> Result<Vec<Round>, Fault> {
    bench.enter()?;
    if window.resident {
        bench.settle(MOST_WORDS)?;
    }
    let mut rounds = Vec::new();
    let mut due = window.now();
    while !stop.load(Relaxed) && rounds.len() < MOST_WORDS as usize - 1 {
        window.pace(&mut due);
        rounds.push(bench.round()?);
    }
    if window.resident {
        bench.leave()?;
    }
    Ok(rounds)
}

/// A thread waits for each stream, the side itself for `bench`'s.
pub(super) fn in_a_thread_each(
    window: &Window,
    side: &mut Side,
    bench: &mut Bench,
    others: Vec<Bench>,
) -> Result<Vec<Round>, SideError> {
    let stop = AtomicBool::new(false);
    let stopped = &stop;
    let mut rounds: Vec<Round> = Vec::with_capacity(1 << 16);
    let mut opened = 0;
    let come = std::thread::scope(|scope| {
        let threads: Vec<_> =
            others.into_iter().map(|bench| scope.spawn(move || beside(*window, bench, stopped))).collect();
        // Whatever ends the rounds ends the others too.
        let stop = Stop(stopped);
        opened = side.open_window();
        let start = window.now();
        let mut due = start;
        while (rounds.len() as u64) < window.most && !side.interrupted() {
            window.pace(&mut due);
            let round = bench.round()?;
            rounds.push(round);
            side.step(Step::Operates, WARM_UP + rounds.len() as u64);
            if window.over(start, round.awake) {
                break;
            }
        }
        drop(stop);
        let gone = Fault::new("a waiting thread", "it panicked");
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(gone.clone())))
            .collect::<Result<Vec<_>, Fault>>()
    })?;
    side.close_window(opened);
    rounds.extend(come.into_iter().flatten());
    Ok(rounds)
}

/// A stream in the loop: when its next kernel is due, and of one that is under way when it was set
/// off, before the call and after it.
struct Stream<'a> {
    bench: &'a mut Bench,
    due: u64,
    under_way: Option<(u64, u64)>,
}

/// One thread sleeps until any stream's kernel is done, or the next is due.
pub(super) fn in_one_loop(
    window: &Window,
    side: &mut Side,
    bench: &mut Bench,
    mut others: Vec<Bench>,
) -> Result<Vec<Round>, SideError> {
    let mut events = Events::new().map_err(fault)?;
    let mut rounds: Vec<Round> = Vec::with_capacity(1 << 16);
    let opened = side.open_window();
    let start = window.now();
    let benches = [bench].into_iter().chain(&mut others);
    let mut streams: Vec<Stream<'_>> =
        benches.map(|bench| Stream { bench, due: start, under_way: None }).collect();
    loop {
        let now = window.now();
        let open = (rounds.len() as u64) < window.most && !side.interrupted() && !window.over(start, now);
        for (key, stream) in (0_u64..).zip(&mut streams) {
            if open && stream.under_way.is_none() && stream.due <= now {
                stream.under_way = Some(stream.bench.begin()?);
                // SAFETY: the event is there until the process ends.
                unsafe { events.add(&stream.bench.event(), key) }.map_err(fault)?;
            }
        }
        if events.is_empty() && !open {
            break;
        }
        let waiting = streams.iter().filter(|stream| open && stream.under_way.is_none());
        sleep(&events, waiting.map(|stream| stream.due).min().map(|due| due.saturating_sub(window.now())))?;
        for done in events.done().map_err(fault)? {
            done.result.map_err(fault)?;
            let Some(stream) = streams.get_mut(done.key as usize) else { continue };
            let Some((before, called)) = stream.under_way.take() else { continue };
            let round = stream.bench.over(before, called);
            stream.due = if window.gap_ns > 0 { stream.due + window.gap_ns } else { round.awake };
            rounds.push(round);
            side.step(Step::Operates, WARM_UP + rounds.len() as u64);
        }
    }
    side.close_window(opened);
    Ok(rounds)
}

/// Sleeps until an event is done, or for `longest_ns`.
fn sleep(events: &Events, longest_ns: Option<u64>) -> Result<(), Fault> {
    let until = longest_ns
        .map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    match poll(&mut [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN)], until.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(Fault::new("poll", errno)),
    }
}

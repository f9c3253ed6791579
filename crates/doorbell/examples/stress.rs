// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for a lost wake-up: `cargo run --release --all-features --example stress -- SECONDS [WAY]`
//!
//! One waiter, 1 to 8 notifiers, as threads and as processes, over every way of waiting, through epoll and in tokio. Each
//! notifier rings in bursts with pseudo-random gaps and then pauses until the waiter has taken every message; so
//! each burst ends with a waiter about to sleep and a last ring that must not be lost. The waiter takes few messages
//! at a time. A wait of five minutes although a message is there, or a count of rings that is not the number sent, ends
//! the program with status 1.
//!
//! One line per cell: way, notifiers, threads or processes, rings, sleeps.

use doorbell::peer::Trusted;
use doorbell::rendezvous::{Connection, Offer, Segment, inherited};
use doorbell::wait::{Adaptive, Eventfd, Futex, Spin, Wait, Yield};
use doorbell::{Bell, BellFd, WaitError};
use doorbell_core::peer_memory::PeerMemory;
use rustix::event::{Timespec, epoll};
use std::mem::MaybeUninit;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Rings in a burst, and the widest gap between them in pauses of the processor.
const BURSTS: [(u32, u32); 3] = [(20, 400), (20, 30), (1000, 1)];
const NOTIFIERS: [u32; 4] = [1, 2, 3, 8];
/// A wait that lasts this long although a message is there will not end.
const STUCK: Duration = Duration::from_secs(300);
const ROLE: &str = "DOORBELL_STRESS_NOTIFIER";

/// What notifiers and waiter share besides the bell.
#[derive(Clone, Copy)]
struct Messages<'a> {
    published: &'a AtomicU64,
    taken: &'a AtomicU64,
    stop: &'a AtomicU64,
}

impl<'a> Messages<'a> {
    fn of(payload: PeerMemory<'a>) -> Self {
        // Each in lines of its own.
        let word = |index: u64| payload.word64(128 * index).expect("the payload has a page");
        Self { published: word(0), taken: word(1), stop: word(2) }
    }
}

/// Rings until told to stop. Returns when the waiter has taken all.
fn notify(bell: &Bell<Futex>, messages: Messages<'_>, mut seed: u32) {
    while messages.stop.load(Ordering::Relaxed) == 0 {
        // Wide gaps, in which the waiter falls asleep; narrow ones, about as long as falling asleep takes; none.
        let (burst, widest) = BURSTS[seed as usize % BURSTS.len()];
        for _ in 0..burst {
            messages.published.fetch_add(1, Ordering::Release);
            bell.ring();
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            for _ in 0..seed % widest {
                std::hint::spin_loop();
            }
        }
        while messages.taken.load(Ordering::Acquire) < messages.published.load(Ordering::Acquire) {
            if messages.stop.load(Ordering::Relaxed) > 1 {
                return;
            }
            thread::yield_now();
        }
    }
}

/// The waiting side of one cell.
trait Waiting {
    /// Sleeps until a ring; returns how many. 0 if a notifier ended, `None` after `STUCK`.
    fn wait(&mut self) -> Option<u64>;
    /// How often it slept, where that is counted.
    fn sleeps(&self) -> u64;
}

struct ByBell<W>(Bell<W>);

impl<W: Wait> Waiting for ByBell<W> {
    fn wait(&mut self) -> Option<u64> {
        match self.0.wait_timeout(STUCK) {
            Err(WaitError::PeerGone(_)) => Some(0),
            heard => heard.unwrap().map(|rings| rings.get().into()),
        }
    }
    fn sleeps(&self) -> u64 {
        self.0.counts().slept
    }
}

struct ByEpoll {
    file: BellFd<Futex>,
    epoll: rustix::fd::OwnedFd,
    sleeps: u64,
}

impl ByEpoll {
    fn new(bell: Bell<Futex>, more: epoll::EventFlags) -> Self {
        let file = bell.into_fd().unwrap();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(&epoll, &file, epoll::EventData::new_u64(0), epoll::EventFlags::IN | more).unwrap();
        Self { file, epoll, sleeps: 0 }
    }
}

impl Waiting for ByEpoll {
    fn wait(&mut self) -> Option<u64> {
        loop {
            // Before epoll, so that an edge that came before is not waited for.
            match self.file.heard() {
                Err(WaitError::PeerGone(_)) => return Some(0),
                heard => {
                    if let Some(rings) = heard.unwrap() {
                        return Some(rings.get().into());
                    }
                }
            }
            self.sleeps += 1;
            let mut buffer = [MaybeUninit::uninit(); 1];
            let timeout = Timespec { tv_sec: STUCK.as_secs().cast_signed(), tv_nsec: 0 };
            match epoll::wait(&self.epoll, &mut buffer[..], Some(&timeout)) {
                Ok(([], _)) => return None,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("epoll_wait: {error}"),
            }
        }
    }
    fn sleeps(&self) -> u64 {
        self.sleeps
    }
}

#[cfg(feature = "tokio")]
struct ByTokio {
    runtime: tokio::runtime::Runtime,
    bell: doorbell::AsyncBell<Futex>,
    /// Is each wait begun once and dropped in its middle, before it is waited to its end?
    drops: bool,
}

#[cfg(feature = "tokio")]
impl ByTokio {
    fn new(bell: Bell<Futex>, drops: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bell = runtime.block_on(async { doorbell::AsyncBell::new(bell) }).unwrap();
        Self { runtime, bell, drops }
    }
}

#[cfg(feature = "tokio")]
impl Waiting for ByTokio {
    fn wait(&mut self) -> Option<u64> {
        let Self { runtime, bell, drops } = self;
        let heard = runtime.block_on(async {
            if *drops {
                tokio::select! {
                    biased;
                    heard = bell.wait() => return Some(heard),
                    () = std::future::ready(()) => {}
                }
            }
            tokio::time::timeout(STUCK, bell.wait()).await.ok()
        });
        match heard? {
            Err(WaitError::PeerGone(_)) => Some(0),
            heard => Some(heard.unwrap().get().into()),
        }
    }
    fn sleeps(&self) -> u64 {
        self.bell.get_ref().counts().slept
    }
}

/// Takes messages until `end`, then until there are no more. Returns the rings heard, or why it got stuck.
fn take(
    waiting: &mut dyn Waiting,
    messages: Messages<'_>,
    end: Instant,
    running: &mut dyn FnMut() -> bool,
) -> Result<u64, String> {
    let (mut taken, mut rings) = (0, 0);
    loop {
        let published = messages.published.load(Ordering::Acquire);
        if taken < published {
            // Few at a time: the next look at the bell finds rings of messages taken before.
            taken += (published - taken).min(1 + taken % 3);
            messages.taken.store(taken, Ordering::Release);
            continue;
        }
        if Instant::now() >= end {
            messages.stop.store(1, Ordering::Relaxed);
        }
        if messages.stop.load(Ordering::Relaxed) == 1 && !running() && rings == published {
            return Ok(rings);
        }
        if messages.stop.load(Ordering::Relaxed) == 1 && rings == published {
            // Everything was heard; the notifiers may be about to begin a last burst or to end.
            thread::yield_now();
            continue;
        }
        let more = waiting.wait();
        rings += more.unwrap_or(0);
        let published = messages.published.load(Ordering::Acquire);
        if more.is_none() && (rings < published || taken < published) {
            messages.stop.store(2, Ordering::Relaxed);
            return Err(format!("STUCK: {published} published, {taken} taken, {rings} rings heard"));
        }
    }
}

struct Cell {
    way: &'static str,
    notifiers: u32,
    processes: bool,
}

fn run(cell: &Cell, lasting: Duration) -> Result<(u64, u64), String> {
    let offer = Offer { bells: 1, eventfds: 1, payload: 4096, ..Offer::default() };
    let segment = Arc::new(Segment::new(&offer).map_err(|error| error.to_string())?);
    let mut waiting = waiting_by(cell.way, &segment).ok_or(format!("there is no way {}", cell.way))?;
    let messages = Messages::of(segment.payload());
    let end = Instant::now() + lasting;
    let rings = if cell.processes {
        let mut others: Vec<(Child, Connection<Trusted>)> =
            (0..cell.notifiers).map(|number| start(number, &segment)).collect();
        let mut running =
            || others.iter_mut().any(|(child, _)| child.try_wait().is_ok_and(|status| status.is_none()));
        let rings = take(&mut *waiting, messages, end, &mut running);
        for (child, _) in &mut others {
            child.wait().map_err(|error| error.to_string())?;
        }
        rings?
    } else {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..cell.notifiers)
                .map(|number| {
                    let bell = segment.bell_waiting_by(0).expect("one bell");
                    scope.spawn(move || notify(&bell, messages, number + 1))
                })
                .collect();
            take(&mut *waiting, messages, end, &mut || threads.iter().any(|thread| !thread.is_finished()))
        })?
    };
    Ok((rings, waiting.sleeps()))
}

fn waiting_by(way: &str, segment: &Segment) -> Option<Box<dyn Waiting>> {
    fn by<W: Wait + Default + 'static>(segment: &Segment) -> Option<Box<dyn Waiting>> {
        Some(Box::new(ByBell::<W>(segment.bell_waiting_by(0)?)))
    }
    match way {
        "adaptive" => by::<Adaptive>(segment),
        "futex" => by::<Futex>(segment),
        "eventfd" => by::<Eventfd>(segment),
        "spin" => by::<Spin>(segment),
        "yield" => by::<Yield>(segment),
        #[cfg(feature = "io_uring")]
        "io_uring" => by::<doorbell::wait::IoUring>(segment),
        "epoll" => Some(Box::new(ByEpoll::new(segment.bell_waiting_by(0)?, epoll::EventFlags::empty()))),
        "epoll-edge" => Some(Box::new(ByEpoll::new(segment.bell_waiting_by(0)?, epoll::EventFlags::ET))),
        #[cfg(feature = "tokio")]
        "tokio" => Some(Box::new(ByTokio::new(segment.bell_waiting_by(0)?, false))),
        #[cfg(feature = "tokio")]
        "tokio-drop" => Some(Box::new(ByTokio::new(segment.bell_waiting_by(0)?, true))),
        _ => None,
    }
}

/// All ways, and whether this program was built with the feature that each needs.
const WAYS: [(&str, bool); 10] = [
    ("adaptive", true),
    ("futex", true),
    ("eventfd", true),
    ("spin", true),
    ("yield", true),
    ("io_uring", cfg!(feature = "io_uring")),
    ("epoll", true),
    ("epoll-edge", true),
    ("tokio", cfg!(feature = "tokio")),
    ("tokio-drop", cfg!(feature = "tokio")),
];

/// What the kernel lacks for a way.
fn lacking(way: &str) -> Option<String> {
    match way {
        #[cfg(feature = "io_uring")]
        "io_uring" => {
            let mut bell: Bell<doorbell::wait::IoUring> =
                Bell::new().expect("memory for a bell").waiting_by();
            match bell.wait_timeout(Duration::from_millis(1)) {
                Err(error @ WaitError::Unsupported { .. }) => Some(error.to_string()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn start(number: u32, segment: &Arc<Segment>) -> (Child, Connection<Trusted>) {
    let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
    command.env(ROLE, (number + 1).to_string());
    let offer = inherited::offer(&mut command).expect("a socket pair");
    let child = command.spawn().expect("this program starts");
    // SAFETY: this program, in another role.
    let connection = unsafe { offer.meet_as(segment, child.id()) }.expect("the child joins");
    (child, connection)
}

fn main() -> ExitCode {
    if let Ok(seed) = std::env::var(ROLE) {
        let connection: Connection<Trusted> =
            // SAFETY: a process or thread of this program, which follows the protocol.
            unsafe { doorbell::rendezvous::Join::of() }.inherited().expect("the parent offers");
        let bell = connection.bell_waiting_by(0).expect("one bell");
        notify(&bell, Messages::of(connection.segment().payload()), seed.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let wanted = arguments.next();
    let chosen = WAYS.into_iter().filter(|(way, built)| match &wanted {
        Some(wanted) => wanted == way,
        None => *built,
    });
    let there = |way: &&str| {
        let lacking = lacking(way);
        if let Some(why) = &lacking {
            println!("{way:<10} not there: {why}");
        }
        lacking.is_none()
    };
    let ways = chosen.map(|(way, _)| way).filter(there);
    let cells: Vec<Cell> = ways
        .flat_map(|way| {
            NOTIFIERS
                .into_iter()
                .flat_map(move |notifiers| [false, true].map(|processes| Cell { way, notifiers, processes }))
        })
        .collect();
    let each = Duration::from_secs(seconds) / u32::try_from(cells.len().max(1)).unwrap_or(1);
    let mut total = 0;
    for cell in &cells {
        let kind = if cell.processes { "processes" } else { "threads" };
        match run(cell, each) {
            Ok((rings, sleeps)) => {
                total += rings;
                println!(
                    "{:<10} {} {kind:<9} {rings:>11} rings {sleeps:>10} sleeps",
                    cell.way, cell.notifiers
                );
            }
            Err(why) => {
                println!("{:<10} {} {kind:<9} {why}", cell.way, cell.notifiers);
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{total} rings, none lost");
    ExitCode::SUCCESS
}

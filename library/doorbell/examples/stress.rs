// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for a lost wake-up: `cargo run --release --all-features --example stress -- SECONDS [WAY]`
//!
//! One waiter, 1 to 8 notifiers, as threads, as processes and as forked children, over every way of
//! waiting, through epoll and in tokio. Each notifier rings in bursts with pseudo-random gaps and
//! then pauses until the waiter has taken every message; so each burst ends with a waiter about to
//! sleep and a last ring that must not be lost. The waiter takes few messages at a time. Of some,
//! one after the other is stopped and goes on; of some, one after the other is killed, wherever it
//! is, and another comes when the waiter was told. A wait of five minutes although a message is
//! there, a death that is not told within them, or a count of rings that is not the number sent
//! (where one was killed it may have been about to ring), ends the program with status 1.
//!
//! One line per cell: way, notifiers, what they are, rings, sleeps,
//! how many were stopped or killed.

use doorbell::peer::{PeerId, Trusted};
use doorbell::rendezvous::{Connection, Offer, Segment, inherited};
use doorbell::wait::{Adaptive, Eventfd, Futex, Spin, Wait, Yield};
use doorbell::{Bell, BellFd, WaitError};
use doorbell_core::peer_memory::PeerMemory;
use rustix::event::{Timespec, epoll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Rings in a burst, and the widest gap between them in pauses of the processor: wide gaps, in
/// which the waiter falls asleep; narrow ones, about as long as falling asleep takes; none; and
/// none for so long that most of all rings are of these.
const BURSTS: [(u32, u32); 7] = [(20, 400), (20, 30), (1000, 1), (20, 400), (20, 30), (1000, 1), (20_000, 1)];
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

/// Xorshift.
fn throw(seed: &mut u32) -> u32 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    *seed
}

/// Rings until told to stop. Returns when the waiter has taken all.
fn notify(bell: &Bell<Futex>, messages: Messages<'_>, mut seed: u32) {
    while messages.stop.load(Ordering::Relaxed) == 0 {
        let (burst, widest) = BURSTS[seed as usize % BURSTS.len()];
        for _ in 0..burst {
            messages.published.fetch_add(1, Ordering::Release);
            bell.ring();
            for _ in 0..throw(&mut seed) % widest {
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

/// What a wait ended with.
enum Heard {
    Rings(u64),
    Gone(PeerId),
    Nothing,
}

impl Heard {
    fn of(waited: Result<Option<u64>, WaitError>) -> Self {
        match waited {
            Err(WaitError::PeerGone(peer)) => Self::Gone(peer),
            waited => waited.unwrap().map_or(Self::Nothing, Self::Rings),
        }
    }
}

/// The waiting side of one cell.
trait Waiting {
    /// Sleeps until a ring or a death, but no longer than `timeout`.
    fn wait(&mut self, timeout: Duration) -> Heard;
    /// How often it slept, where that is counted.
    fn sleeps(&self) -> u64;
}

struct ByBell<W>(Bell<W>);

impl<W: Wait> Waiting for ByBell<W> {
    fn wait(&mut self, timeout: Duration) -> Heard {
        Heard::of(self.0.wait_timeout(timeout).map(|rings| rings.map(|rings| rings.get().into())))
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
    fn wait(&mut self, timeout: Duration) -> Heard {
        loop {
            // Before epoll, so that an edge that came before is not waited for.
            let heard = Heard::of(self.file.heard().map(|rings| rings.map(|rings| rings.get().into())));
            if !matches!(heard, Heard::Nothing) {
                return heard;
            }
            self.sleeps += 1;
            let mut buffer = [MaybeUninit::uninit(); 1];
            let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: 0 };
            match epoll::wait(&self.epoll, &mut buffer[..], Some(&timeout)) {
                Ok(([], _)) => return Heard::Nothing,
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
    fn wait(&mut self, timeout: Duration) -> Heard {
        let Self { runtime, bell, drops } = self;
        let heard = runtime.block_on(async {
            if *drops {
                tokio::select! {
                    biased;
                    heard = bell.wait() => return Some(heard),
                    () = std::future::ready(()) => {}
                }
            }
            tokio::time::timeout(timeout, bell.wait()).await.ok()
        });
        Heard::of(heard.map(|heard| heard.map(|rings| rings.get().into())).transpose())
    }
    fn sleeps(&self) -> u64 {
        self.bell.get_ref().counts().slept
    }
}

/// What the waiter and whoever kills tell each other.
#[derive(Default)]
struct Deaths {
    /// Each may have been about to ring for a message that it had published.
    killed: AtomicU64,
    told: Mutex<HashSet<PeerId>>,
}

impl Deaths {
    fn tell(&self, peer: PeerId) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(peer);
    }
    fn is_told(&self, peer: PeerId) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).contains(&peer)
    }
}

/// Takes messages until `end`, then until there are no more. Returns
/// the rings heard, or why it got stuck.
fn take(
    waiting: &mut dyn Waiting,
    messages: Messages<'_>,
    deaths: &Deaths,
    end: Instant,
    running: &dyn Fn() -> bool,
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
            let _ = messages.stop.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        let is_over = messages.stop.load(Ordering::Relaxed) != 0;
        let has_ended = is_over && !running();
        // Nobody may be left to ring, and who was killed did not ring.
        let all_heard = is_over && rings + deaths.killed.load(Ordering::Relaxed) >= published;
        match waiting.wait(if has_ended || all_heard { Duration::ZERO } else { STUCK }) {
            Heard::Rings(more) => rings += more,
            Heard::Gone(peer) => {
                deaths.tell(peer);
                // It is told after all rings, and again and again when nobody is left.
                if has_ended {
                    return ended(rings, messages, deaths);
                }
            }
            Heard::Nothing if has_ended => return ended(rings, messages, deaths),
            // The notifiers may be about to begin a last burst or to end.
            Heard::Nothing if all_heard => thread::yield_now(),
            Heard::Nothing => {
                let published = messages.published.load(Ordering::Acquire);
                if rings < published || taken < published {
                    messages.stop.store(2, Ordering::Relaxed);
                    return Err(format!("STUCK: {published} published, {taken} taken, {rings} rings heard"));
                }
            }
        }
    }
}

/// When nobody rings any more and nothing is left to be heard.
fn ended(rings: u64, messages: Messages<'_>, deaths: &Deaths) -> Result<u64, String> {
    let (published, killed) =
        (messages.published.load(Ordering::Acquire), deaths.killed.load(Ordering::Relaxed));
    if !(published.saturating_sub(killed)..=published).contains(&rings) {
        return Err(format!("LOST: {published} published, {killed} killed, {rings} rings heard"));
    }
    Ok(rings)
}

/// What those who ring are, and what becomes of them meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ringers {
    Threads,
    Processes,
    Forked,
    /// Processes that are stopped (SIGSTOP) one after the other, and go on.
    Stopped,
    /// Processes that are killed (SIGKILL) one after the other, and have successors.
    Killed,
}

impl Ringers {
    const ALL: [(Self, &'static [u32]); 5] = [
        (Self::Threads, &[1, 2, 3, 8]),
        (Self::Processes, &[1, 2, 3, 8]),
        (Self::Forked, &[1, 3]),
        (Self::Stopped, &[1, 3]),
        (Self::Killed, &[1, 3]),
    ];
}

/// A child of this process that rings.
struct Ringer {
    pid: Pid,
    connection: Option<Connection<Trusted>>,
}

impl Ringer {
    /// This program again, in another role.
    fn started(seed: u32, segment: &Arc<Segment>) -> Result<Self, String> {
        let mut command = Command::new(
            std::env::current_exe().map_err(|error| format!("no file of this program: {error}"))?,
        );
        command.env(ROLE, seed.to_string());
        let offer = inherited::offer(&mut command).map_err(|error| error.to_string())?;
        let child = command.spawn().map_err(|error| format!("this program does not start: {error}"))?;
        // SAFETY: this program, in another role.
        let connection = unsafe { offer.meet_as(segment, child.id()) }.map_err(|error| error.to_string())?;
        Ok(Self { pid: Pid::from_child(&child), connection: Some(connection) })
    }

    fn forked(seed: u32, segment: &Segment) -> Result<Self, String> {
        // SAFETY: the child takes no locks but the library's and the
        // allocator's, which a fork waits for, and never returns.
        match unsafe { libc::fork() } {
            0 => {
                ring_here(&segment.bell_waiting_by(0).expect("one bell"), segment, seed);
                // SAFETY: ends the process without running anything of the parent's.
                unsafe { libc::_exit(0) }
            }
            pid => {
                let pid = Pid::from_raw(pid).filter(|pid| pid.as_raw_nonzero().get() > 0);
                Ok(Self { pid: pid.ok_or("no child was forked")?, connection: None })
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        kill_process(self.pid, signal).map_err(|error| format!("no {signal:?} to {}: {error}", self.pid))
    }

    fn reap(&self) -> Result<(), String> {
        waitpid(Some(self.pid), WaitOptions::empty()).map(drop).map_err(|error| error.to_string())
    }
}

/// In a child of the stress.
fn ring_here(bell: &Bell<Futex>, segment: &Segment, seed: u32) {
    // Who kills the stress ends its children too.
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal of any number");
    notify(bell, Messages::of(segment.payload()), seed);
}

/// Starts `count` children, stops or kills one after the other until all are to stop, and waits for
/// their ends. The thread that does this is the children's parent: they end with it. Returns how
/// many it stopped or killed.
fn keep(cell: &Cell, segment: &Arc<Segment>, deaths: &Deaths) -> Result<u64, String> {
    let stop = Messages::of(segment.payload()).stop;
    let mut next = 0;
    let mut start = || {
        next += 1;
        match cell.ringers {
            Ringers::Forked => Ringer::forked(next, segment),
            _ => Ringer::started(next, segment),
        }
    };
    let mut ringers = (0..cell.notifiers).map(|_| start()).collect::<Result<Vec<_>, _>>()?;
    let (mut seed, mut done) = (0x9e37_79b9, 0);
    while stop.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_micros((throw(&mut seed) % 8192).into()));
        let place = throw(&mut seed) as usize % ringers.len();
        let ringer = &ringers[place];
        match cell.ringers {
            Ringers::Stopped => {
                ringer.signal(Signal::STOP)?;
                thread::sleep(Duration::from_micros((throw(&mut seed) % 4096).into()));
                ringer.signal(Signal::CONT)?;
            }
            Ringers::Killed => {
                deaths.killed.fetch_add(1, Ordering::Relaxed);
                ringer.signal(Signal::KILL)?;
                let gone = ringer.connection.as_ref().ok_or("a process has a connection")?.peer().id();
                let since = Instant::now();
                while !deaths.is_told(gone) {
                    // The waiter is stuck, and says so.
                    if stop.load(Ordering::Relaxed) > 1 {
                        break;
                    }
                    if since.elapsed() > STUCK {
                        return Err(format!("NOT TOLD: {gone} was killed, and nobody heard of it"));
                    }
                    thread::sleep(Duration::from_micros(100));
                }
                if stop.load(Ordering::Relaxed) <= 1 {
                    ringer.reap()?;
                    ringers[place] = start()?;
                }
            }
            Ringers::Threads | Ringers::Processes | Ringers::Forked => continue,
        }
        done += 1;
    }
    ringers.iter().try_for_each(Ringer::reap)?;
    Ok(done)
}

struct Cell {
    way: &'static str,
    notifiers: u32,
    ringers: Ringers,
}

/// What came of a cell.
struct Done {
    rings: u64,
    sleeps: u64,
    /// How many were stopped or killed.
    hit: u64,
}

fn run(cell: &Cell, lasting: Duration) -> Result<Done, String> {
    let offer = Offer { bells: 1, eventfds: 1, payload: 4096, ..Offer::default() };
    let segment =
        if cell.ringers == Ringers::Forked { Segment::for_children(&offer) } else { Segment::new(&offer) };
    let segment = Arc::new(segment.map_err(|error| error.to_string())?);
    let mut waiting = waiting_by(cell.way, &segment).ok_or(format!("there is no way {}", cell.way))?;
    let messages = Messages::of(segment.payload());
    let deaths = Deaths::default();
    let end = Instant::now() + lasting;
    thread::scope(|scope| {
        let threads: Vec<_> = if cell.ringers == Ringers::Threads {
            (0..cell.notifiers)
                .map(|number| {
                    let bell = segment.bell_waiting_by(0).expect("one bell");
                    scope.spawn(move || {
                        notify(&bell, messages, number + 1);
                        Ok::<u64, String>(0)
                    })
                })
                .collect()
        } else {
            let (segment, deaths) = (&segment, &deaths);
            vec![scope.spawn(move || {
                let kept = keep(cell, segment, deaths);
                if kept.is_err() {
                    messages.stop.store(2, Ordering::Relaxed);
                    // The waiter may sleep, and nobody else rings any more.
                    segment.bell_waiting_by::<Futex>(0).expect("one bell").ring();
                }
                kept
            })]
        };
        let running = || threads.iter().any(|thread| !thread.is_finished());
        let taken = take(&mut *waiting, messages, &deaths, end, &running);
        let mut hit = 0;
        for thread in threads {
            hit += thread.join().map_err(|_| "a notifier panicked")??;
        }
        Ok(Done { rings: taken?, sleeps: waiting.sleeps(), hit })
    })
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

fn main() -> ExitCode {
    if let Ok(seed) = std::env::var(ROLE) {
        let connection: Connection<Trusted> =
            // SAFETY: a process or thread of this program, which follows the protocol.
            unsafe { doorbell::rendezvous::Join::of() }.inherited().expect("the parent offers");
        let bell = connection.bell_waiting_by(0).expect("one bell");
        ring_here(&bell, connection.segment(), seed.parse().expect("a number"));
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
            Ringers::ALL.into_iter().flat_map(move |(ringers, counts)| {
                counts.iter().map(move |&notifiers| Cell { way, notifiers, ringers })
            })
        })
        .collect();
    let each = Duration::from_secs(seconds) / u32::try_from(cells.len().max(1)).unwrap_or(1);
    let (mut total, mut stopped, mut killed) = (0, 0, 0);
    for cell in &cells {
        let Cell { way, notifiers, ringers } = cell;
        let kind = format!("{ringers:?}").to_lowercase();
        print!("{way:<10} {notifiers} {kind:<9} ");
        match run(cell, each) {
            Ok(Done { rings, sleeps, hit }) => {
                total += rings;
                print!("{rings:>11} rings {sleeps:>10} sleeps");
                match ringers {
                    Ringers::Stopped => stopped += hit,
                    Ringers::Killed => killed += hit,
                    Ringers::Threads | Ringers::Processes | Ringers::Forked => {}
                }
                println!("{}", if hit > 0 { format!(" {hit:>7} {kind}") } else { String::new() });
            }
            Err(why) => {
                println!("{why}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{stopped} stopped and {killed} killed, of whom each was told");
    println!("{total} rings, none lost");
    ExitCode::SUCCESS
}

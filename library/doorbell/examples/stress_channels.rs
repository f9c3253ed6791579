// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for a message that is lost, doubled or slept through:
//! `cargo run --release --features tokio,io_uring --example stress_channels -- SECONDS [CELL]`
//!
//! Built as it is by users: without fault injection, whose points are full fences on x86.
//! (`--all-features` is the other arm.)
//!
//! Producers send bursts of messages of all lengths, in every way there is, and
//! wait for an answer over a lane of their own after each; so each burst ends with
//! a receiver about to sleep and a last message that must wake it. Long bursts
//! make senders leave out their fences. A wait of five minutes, or a message that
//! is not the next of its producer, whole, ends the program with status 1.
//!
//! One line per cell: what receives, threads or processes, messages,
//! sleeps of the receiver where they are counted.

use doorbell::Deadline;
use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Gather, Lanes, Receiver, RecvError, SendError, Sender};
use doorbell::peer::{Trusted, Untrusted};
use doorbell::rendezvous::{Connection, Offer, Segment, inherited};
use doorbell::wait::{Adaptive, Eventfd, Futex, Wait};
#[cfg(feature = "io_uring")]
use doorbell::{Bell, WaitError};
use std::collections::VecDeque;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Messages in a burst, and the widest gap between them in pauses of the processor.
const BURSTS: [(u64, u32); 4] = [(1, 1), (20, 400), (300, 30), (6000, 1)];
/// Nobody is late by so much, though the machine be stopped for a minute.
const STUCK: Duration = Duration::from_secs(300);
const PRODUCERS: u32 = 3;
const ROLE: &str = "DOORBELL_STRESS_PRODUCER";
const CAPACITY: u64 = 1 << 12;
/// What a message says beside its number.
const GO_ON: u64 = 0;
const ANSWER: u64 = 1;
const END: u64 = 2;

/// Xorshift.
struct Dice(u32);

impl Dice {
    fn throw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// Message `number`, of 16 to 215 bytes.
fn write(message: &mut Vec<u8>, number: u64, flag: u64, dice: &mut Dice) {
    message.clear();
    message.extend(number.to_ne_bytes());
    message.extend(flag.to_ne_bytes());
    // Most are short: many fit the ring.
    let most = if dice.throw().is_multiple_of(8) { 200 } else { 16 };
    message.resize(16 + (dice.throw() % most) as usize, number as u8);
}

/// The flag of a message that is number `expected`, whole.
fn read(message: &[u8], expected: u64) -> Result<u64, String> {
    let word = |at: usize| Some(u64::from_ne_bytes(message.get(at..at + 8)?.try_into().ok()?));
    match (word(0), word(8)) {
        (Some(number), Some(flag))
            if number == expected && message[16..].iter().all(|byte| *byte == number as u8) =>
        {
            Ok(flag)
        }
        found => Err(format!("WRONG: {found:?} in {} bytes in place of message {expected}", message.len())),
    }
}

/// Sends one message in one of the ways there are.
fn send<T: doorbell::peer::Trust, W: Wait>(
    sender: &mut Sender<T, W>,
    message: &[u8],
    dice: &mut Dice,
) -> Result<(), SendError> {
    match dice.throw() % 16 {
        0 => {
            let mut slot = sender.reserve(message.len() + 8)?;
            slot.write(0, message);
            slot.commit_first(message.len())
        }
        1 => sender.batch().push_deadline(message, None),
        2 => match sender.push(message) {
            Err(SendError::Full) => sender.send(message),
            pushed => pushed.map(|()| sender.ring()),
        },
        3 => match sender.try_send(message) {
            Err(SendError::Full) => sender.send(message),
            sent => sent,
        },
        _ => sender.send(message),
    }
}

/// Sends until `end`, and the last message after the last answer.
fn produce<T: doorbell::peer::Trust, W: Wait>(
    sender: &mut Sender<T, W>,
    answers: &mut Receiver<T, W>,
    seed: u32,
    end: Instant,
) -> Result<(), String> {
    let (mut dice, mut message, mut number) = (Dice(seed * 7919 + 1), Vec::new(), 0_u64);
    loop {
        let is_over = Instant::now() >= end;
        let (burst, widest) = BURSTS[dice.throw() as usize % BURSTS.len()];
        let burst = if is_over { 1 } else { burst };
        for left in (0..burst).rev() {
            let flag = if is_over {
                END
            } else if left == 0 {
                ANSWER
            } else {
                GO_ON
            };
            write(&mut message, number, flag, &mut dice);
            send(sender, &message, &mut dice).map_err(|error| error.to_string())?;
            number += 1;
            (0..dice.throw() % widest).for_each(|_| std::hint::spin_loop());
        }
        match answers.recv_timeout(STUCK) {
            Ok(Some(answer)) => read(&answer.to_vec(), number - 1).map(drop)?,
            Ok(None) => return Err(format!("STUCK: no answer to message {}", number - 1)),
            Err(error) => return Err(error.to_string()),
        }
        if is_over {
            return Ok(());
        }
    }
}

/// The receiving side of a cell: the next message, and of which
/// producer it is. `None` after [`STUCK`].
type Take<'a> = Box<dyn FnMut(&mut Vec<u8>) -> Result<Option<usize>, String> + 'a>;

/// Receives from all until all have ended. Returns how many messages there were.
fn consume<T: doorbell::peer::Trust, W: Wait>(
    take: &mut Take<'_>,
    answers: &mut [Sender<T, W>],
) -> Result<u64, String> {
    let mut expected = vec![0_u64; answers.len()];
    let (mut left, mut message) = (answers.len(), Vec::new());
    while left > 0 {
        let Some(producer) = take(&mut message)? else {
            return Err(format!("STUCK: nothing came behind {expected:?}"));
        };
        let flag = read(&message, expected[producer])?;
        if flag != GO_ON {
            let mut answer = expected[producer].to_ne_bytes().to_vec();
            answer.extend([0; 8]);
            answer.resize(24, expected[producer] as u8);
            answers[producer].send(&answer).map_err(|error| error.to_string())?;
        }
        expected[producer] += 1;
        left -= usize::from(flag == END);
    }
    Ok(expected.iter().sum())
}

fn told<M>(result: Result<Option<M>, RecvError>) -> Result<Option<M>, String> {
    result.map_err(|error| error.to_string())
}

/// Whoever produces: threads or processes, each with two lanes of its own, the second for answers.
struct Producers<T: doorbell::peer::Trust> {
    segments: Vec<Arc<Segment>>,
    connections: Vec<Connection<T>>,
    children: Vec<Child>,
    threads: Vec<thread::JoinHandle<Result<(), String>>>,
    /// Threads begin when their messages have a receiver: a channel
    /// that is full and has none tells so.
    begin: Arc<Barrier>,
}

fn offer() -> Offer {
    Offer::of_lanes(Lanes::new(2, 2, CAPACITY).expect("two lanes fit"))
}

impl Producers<Trusted> {
    fn threads<W: Wait + Default + 'static>(count: u32, lasting: Duration) -> Self {
        let segments: Vec<_> = (0..count)
            .map(|_| Arc::new(Segment::for_threads(&offer()).expect("memory for two lanes")))
            .collect();
        let begin = Arc::new(Barrier::new(count as usize + 1));
        let threads = (0..).zip(&segments).map(|(seed, segment)| {
            let begin = Arc::clone(&begin);
            let mut sender = Sender::<Trusted, W>::at_waiting_by(segment, 0).expect("free");
            let mut answers = Receiver::<Trusted, W>::at_waiting_by(segment, 1).expect("free");
            thread::spawn(move || {
                begin.wait();
                produce(&mut sender, &mut answers, seed, Instant::now() + lasting)
            })
        });
        let threads = threads.collect();
        Self { segments, connections: Vec::new(), children: Vec::new(), threads, begin }
    }
}

impl Producers<Untrusted> {
    fn processes<W: Wait>(count: u32, lasting: Duration) -> Self {
        let mut this = Self {
            segments: Vec::new(),
            connections: Vec::new(),
            children: Vec::new(),
            threads: Vec::new(),
            begin: Arc::new(Barrier::new(1)),
        };
        for seed in 0..count {
            let segment = Arc::new(Segment::new(&offer()).expect("memory for two lanes"));
            let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
            command.env(ROLE, format!("{} {seed} {}", W::NAME, lasting.as_millis()));
            let offered = inherited::offer(&mut command).expect("a socket pair");
            let child = command.spawn().expect("this program starts");
            this.connections.push(offered.meet(&segment, child.id()).expect("the child joins"));
            this.children.push(child);
        }
        this
    }
}

impl<T: doorbell::peer::Trust> Producers<T> {
    /// What the receiving side ended with, once they have ended too; if it
    /// failed, with what the first of them that failed says: of two that go
    /// wrong, one may be the cause and the other only have seen the end.
    fn ended<C>(self, received: Result<C, String>) -> Result<C, String> {
        match (received, self.end()) {
            (Ok(counted), Ok(())) => Ok(counted),
            (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
            (Err(here), Err(there)) => Err(format!("{here}; a producer: {there}")),
        }
    }

    /// Waits for their ends, and tells of the first that failed.
    fn end(self) -> Result<(), String> {
        for mut child in self.children {
            let status = child.wait().map_err(|error| error.to_string())?;
            if !status.success() {
                return Err(format!("a producer ended with {status}"));
            }
        }
        for thread in self.threads {
            thread.join().map_err(|_| "a producer panicked")??;
        }
        Ok(())
    }
}

fn lane<W: Wait + Default + 'static>(
    processes: bool,
    lasting: Duration,
) -> Result<(u64, Option<u64>), String> {
    fn run<T: doorbell::peer::Trust, W: Wait>(
        mut receiver: Receiver<T, W>,
        answers: Sender<T, W>,
    ) -> Result<(u64, Option<u64>), String> {
        let (mut taken, mut turn) = (VecDeque::new(), 0_usize);
        let mut take: Take<'_> = Box::new(|message| {
            if let Some(next) = taken.pop_front() {
                *message = next;
                return Ok(Some(0));
            }
            turn += 1;
            // Every other time a run, which may go dry.
            if turn.is_multiple_of(2) {
                let run = receiver.recv_batch_deadline(Some(Deadline::after(STUCK)));
                let run = run.map(|run| taken.extend(run.take(turn % 64 + 1).map(|found| found.to_vec())));
                told(run.map(Some))?;
                return Ok(taken.pop_front().map(|next| {
                    *message = next;
                    0
                }));
            }
            Ok(told(receiver.recv_timeout(STUCK))?.map(|found| {
                found.copy_to_vec(message);
                0
            }))
        });
        let messages = consume(&mut take, &mut [answers])?;
        drop(take);
        Ok((messages, Some(receiver.counts().slept)))
    }
    if processes {
        let producers = Producers::processes::<W>(1, lasting);
        let at = &producers.connections[0];
        let ends = (Receiver::attach_waiting_by(at, 0), Sender::attach_waiting_by(at, 1));
        producers.ended(run::<Untrusted, W>(ends.0.expect("free"), ends.1.expect("free")))
    } else {
        let producers = Producers::threads::<W>(1, lasting);
        let at = &producers.segments[0];
        let ends = (Receiver::at_waiting_by(at, 0), Sender::at_waiting_by(at, 1));
        producers.begin.wait();
        producers.ended(run::<Trusted, W>(ends.0.expect("free"), ends.1.expect("free")))
    }
}

fn gather<W: Wait + Default + 'static>(
    processes: bool,
    lasting: Duration,
) -> Result<(u64, Option<u64>), String> {
    fn run<T: doorbell::peer::Trust, W: Wait>(
        mut gather: Gather<T, W>,
        mut answers: Vec<Sender<T, W>>,
    ) -> Result<(u64, Option<u64>), String> {
        let mut take: Take<'_> = Box::new(|message| {
            let found = gather.recv_timeout(STUCK).map_err(|error| error.to_string())?;
            Ok(found.map(|(lane, found)| {
                found.copy_to_vec(message);
                lane
            }))
        });
        let messages = consume(&mut take, &mut answers)?;
        Ok((messages, None))
    }
    if processes {
        let producers = Producers::processes::<W>(PRODUCERS, lasting);
        let mut all = Gather::<Untrusted, W>::default();
        let answers = producers.connections.iter().map(|at| {
            all.add(at, 0).expect("free");
            Sender::attach_waiting_by(at, 1).expect("free")
        });
        let answers = answers.collect();
        producers.ended(run(all, answers))
    } else {
        let producers = Producers::threads::<W>(PRODUCERS, lasting);
        let mut all = Gather::<Trusted, W>::default();
        let answers = producers.segments.iter().map(|at| {
            all.add_at(at, 0).expect("free");
            Sender::at_waiting_by(at, 1).expect("free")
        });
        let answers = answers.collect();
        producers.begin.wait();
        producers.ended(run(all, answers))
    }
}

#[cfg(feature = "tokio")]
fn tokio(processes: bool, lasting: Duration) -> Result<(u64, Option<u64>), String> {
    use doorbell::Async;
    fn run<T: doorbell::peer::Trust>(
        receiver: Receiver<T, Futex>,
        answers: Sender<T, Futex>,
    ) -> Result<(u64, Option<u64>), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let mut receiver =
            runtime.block_on(async { Async::new(receiver) }).map_err(|error| error.to_string())?;
        let mut take: Take<'_> = Box::new(|message| {
            runtime.block_on(async {
                // Begun once and dropped in its middle, before it is waited to its end.
                tokio::select! {
                    biased;
                    found = receiver.recv_into(message) => return told(found.map(|()| Some(0))),
                    () = std::future::ready(()) => {}
                }
                match tokio::time::timeout(STUCK, receiver.recv_into(message)).await {
                    Ok(found) => told(found.map(|()| Some(0))),
                    Err(_) => Ok(None),
                }
            })
        });
        let messages = consume(&mut take, &mut [answers])?;
        drop(take);
        Ok((messages, Some(receiver.get_ref().counts().slept)))
    }
    if processes {
        let producers = Producers::processes::<Futex>(1, lasting);
        let at = &producers.connections[0];
        let ends = (Receiver::attach_waiting_by(at, 0), Sender::attach_waiting_by(at, 1));
        producers.ended(run::<Untrusted>(ends.0.expect("free"), ends.1.expect("free")))
    } else {
        let producers = Producers::threads::<Futex>(1, lasting);
        let at = &producers.segments[0];
        let ends = (Receiver::at_waiting_by(at, 0), Sender::at_waiting_by(at, 1));
        producers.begin.wait();
        producers.ended(run::<Trusted>(ends.0.expect("free"), ends.1.expect("free")))
    }
}

/// Exchanges messages for so long, and counts them.
type Exchange = fn(bool, Duration) -> Result<(u64, Option<u64>), String>;

/// One publisher, twelve subscribers in threads, who hold it back; it
/// waits for all of them after each burst.
fn broadcast<W: Wait + Default + 'static>(lasting: Duration) -> Result<(u64, Option<u64>), String> {
    const SUBSCRIBERS: usize = 12;
    let mut publisher: Publisher<W> = Publisher::waiting_by(CAPACITY).map_err(|error| error.to_string())?;
    let taken: Vec<_> = (0..SUBSCRIBERS).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let threads: Vec<_> = taken
        .iter()
        .map(|taken| {
            let mut subscriber: Subscriber<Trusted, W> =
                publisher.subscribe_waiting_by(WhenSlow::HoldBack).expect("memory");
            let taken = Arc::clone(taken);
            thread::spawn(move || -> Result<u64, String> {
                let (mut message, mut expected) = (Vec::new(), 0_u64);
                loop {
                    let deadline = Some(doorbell::Deadline::after(STUCK));
                    match told(subscriber.recv_into_deadline(&mut message, deadline))? {
                        Some(0) => {}
                        Some(lost) => return Err(format!("LOST: {lost} messages before {expected}")),
                        None => return Err(format!("STUCK: message {expected} did not come")),
                    }
                    let flag = read(&message, expected)?;
                    expected += 1;
                    taken.store(expected, Ordering::Release);
                    if flag == END {
                        return Ok(expected);
                    }
                }
            })
        })
        .collect();
    let (mut dice, mut message, mut number) = (Dice(1), Vec::new(), 0_u64);
    let end = Instant::now() + lasting;
    loop {
        let is_over = Instant::now() >= end;
        let (burst, widest) = BURSTS[dice.throw() as usize % BURSTS.len()];
        for _ in 0..if is_over { 1 } else { burst } {
            write(&mut message, number, if is_over { END } else { GO_ON }, &mut dice);
            publisher.publish(&message).map_err(|error| error.to_string())?;
            number += 1;
            (0..dice.throw() % widest).for_each(|_| std::hint::spin_loop());
        }
        let since = Instant::now();
        while taken.iter().any(|taken| taken.load(Ordering::Acquire) < number) {
            if since.elapsed() > 2 * STUCK {
                return Err(format!("STUCK: {taken:?} of {number} were taken"));
            }
            thread::yield_now();
        }
        if is_over {
            break;
        }
    }
    for thread in threads {
        thread.join().map_err(|_| "a subscriber panicked")??;
    }
    Ok((number * SUBSCRIBERS as u64, None))
}

struct Cell {
    name: &'static str,
    processes: bool,
    run: Exchange,
}

/// What the kernel lacks for io_uring's waits.
#[cfg(feature = "io_uring")]
fn lacking() -> Option<String> {
    let mut bell: Bell<doorbell::wait::IoUring> = Bell::new().expect("memory for a bell").waiting_by();
    match bell.wait_timeout(Duration::from_millis(1)) {
        Err(error @ WaitError::Unsupported { .. }) => Some(error.to_string()),
        _ => None,
    }
}

fn cells() -> Vec<Cell> {
    #[cfg_attr(
        not(any(feature = "tokio", feature = "io_uring")),
        expect(unused_mut, reason = "there are more with these features")
    )]
    let mut all: Vec<(&'static str, Exchange)> = vec![
        ("lane-adaptive", lane::<Adaptive>),
        ("lane-futex", lane::<Futex>),
        ("lane-eventfd", lane::<Eventfd>),
        ("gather-adaptive", gather::<Adaptive>),
        ("gather-futex", gather::<Futex>),
        ("gather-eventfd", gather::<Eventfd>),
    ];
    #[cfg(feature = "tokio")]
    all.push(("lane-tokio", tokio));
    #[cfg(feature = "io_uring")]
    match lacking() {
        None => all.push(("lane-io_uring", lane::<doorbell::wait::IoUring>)),
        Some(why) => println!("lane-io_uring not there: {why}"),
    }
    let mut cells: Vec<_> = all
        .into_iter()
        .flat_map(|(name, run)| [false, true].map(|processes| Cell { name, processes, run }))
        .collect();
    cells.push(Cell {
        name: "broadcast-adaptive",
        processes: false,
        run: |_, lasting| broadcast::<Adaptive>(lasting),
    });
    cells.push(Cell {
        name: "broadcast-futex",
        processes: false,
        run: |_, lasting| broadcast::<Futex>(lasting),
    });
    cells
}

/// A producer in a process of its own.
fn produce_here(role: &str) -> Result<(), String> {
    fn by<W: Wait + Default>(seed: u32, end: Instant) -> Result<(), String> {
        let connection: Connection = inherited::join().map_err(|error| error.to_string())?;
        let mut sender =
            Sender::<_, W>::attach_waiting_by(&connection, 0).map_err(|error| error.to_string())?;
        let mut answers =
            Receiver::<_, W>::attach_waiting_by(&connection, 1).map_err(|error| error.to_string())?;
        produce(&mut sender, &mut answers, seed, end)
    }
    let mut words = role.split(' ');
    let mut next = || words.next().ok_or("a role has three words");
    let (way, seed, lasting) = (next()?, next()?, next()?);
    let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
    let (seed, end) = (number(seed)?, Instant::now() + Duration::from_millis(number(lasting)?.into()));
    match way {
        way if way == Adaptive::NAME => by::<Adaptive>(seed, end),
        way if way == Futex::NAME => by::<Futex>(seed, end),
        way if way == Eventfd::NAME => by::<Eventfd>(seed, end),
        #[cfg(feature = "io_uring")]
        way if way == doorbell::wait::IoUring::NAME => by::<doorbell::wait::IoUring>(seed, end),
        _ => Err(format!("there is no way {way}")),
    }
}

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        return match produce_here(&role) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("producer: {why}");
                ExitCode::FAILURE
            }
        };
    }
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let wanted = arguments.next();
    let cells: Vec<_> = cells()
        .into_iter()
        .filter(|cell| wanted.as_deref().is_none_or(|wanted| cell.name.contains(wanted)))
        .collect();
    if cells.is_empty() {
        eprintln!("no cell is named {}", wanted.unwrap_or_default());
        return ExitCode::FAILURE;
    }
    let each = Duration::from_secs(seconds) / u32::try_from(cells.len()).unwrap_or(1);
    let mut total = 0;
    for cell in &cells {
        let kind = if cell.processes { "processes" } else { "threads" };
        match (cell.run)(cell.processes, each) {
            Ok((messages, sleeps)) => {
                total += messages;
                let sleeps = sleeps.map_or("-".to_owned(), |sleeps| sleeps.to_string());
                println!("{:<18} {kind:<9} {messages:>12} messages {sleeps:>10} sleeps", cell.name);
            }
            Err(why) => {
                println!("{:<18} {kind:<9} {why}", cell.name);
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{total} messages, none lost");
    ExitCode::SUCCESS
}

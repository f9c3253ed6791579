// SPDX-License-Identifier: MIT OR Apache-2.0
//! Are wake-ups of io_uring's futex operation late, or lost? A thread sleeps in io_uring_enter on
//! an IORING_OP_FUTEX_WAIT, another wakes the word after a time of its own; each wake-up that is
//! not there 5 ms later is counted (lalinsky/zio#503 saw half of them come with the time-out of 10
//! ms), and each that never comes.
//!
//! ```text
//! late_futex_wakes [ROUNDS]
//! ```

use std::process::ExitCode;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

const FUTEX2_SIZE_U32: u32 = 2;
const FUTEX2_PRIVATE: u32 = 128;
const ANY: u64 = 0xffff_ffff;
const SYS_FUTEX_WAKE: libc::c_long = 454;

/// How the ring is set up, as libraries do.
const RINGS: [&str; 3] = ["plain", "coop-taskrun", "defer-taskrun"];
/// How the word is keyed, and by which call it is woken.
const KEYS: [(&str, u32); 2] = [("shared", 0), ("private", FUTEX2_PRIVATE)];
const LATE: Duration = Duration::from_millis(5);
/// What a library waits at most, after which it looks by itself.
const PATIENCE: Duration = Duration::from_millis(10);
/// After this a wake-up is lost.
const FOREVER: Duration = Duration::from_secs(1);
/// How a process ends whose wait was never completed, and how one
/// whose wait was completed with an error.
const LOST: u8 = 1;
const FAILED: u8 = 2;
/// The round that tells the waker to end.
const STOP: u32 = u32::MAX;

/// What the two threads of a run share: no run sees another's.
struct Shared {
    word: AtomicU32,
    armed: AtomicU32,
    rung_ns: AtomicU64,
}

/// What came of a run.
struct Seen {
    late: u32,
    lost: u32,
    /// What completed a wait that was neither woken nor too late to sleep.
    error: Option<std::io::Error>,
    worst: Duration,
}

fn ring(kind: &str) -> std::io::Result<IoUring> {
    match kind {
        "coop-taskrun" => IoUring::builder().setup_coop_taskrun().build(8),
        "defer-taskrun" => IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(8),
        _ => IoUring::new(8),
    }
}

/// Sleeps until an armed wait is completed, or the time is up; its result, if it is.
fn wait(ring: &mut IoUring, time: Duration) -> Option<i32> {
    let timeout = Timespec::from(time);
    match ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout)) {
        Ok(_) => {}
        Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {}
        Err(error) => panic!("io_uring_enter: {error}"),
    }
    ring.completion().next().map(|entry| entry.result())
}

/// The error of a wait that was completed otherwise than by a wake-up, or by a word that had
/// changed before it slept.
fn error_of(result: i32) -> Option<std::io::Error> {
    let expected = matches!(result, 0 | 1) || result == -libc::EAGAIN;
    (!expected).then(|| std::io::Error::from_raw_os_error(-result))
}

fn arm(ring: &mut IoUring, word: &AtomicU32, seen: u32, flags: u32) {
    let entry = opcode::FutexWait::new(word.as_ptr(), seen.into(), ANY, FUTEX2_SIZE_U32 | flags).build();
    // SAFETY: the words of this program live as long as it does.
    unsafe { ring.submission().push(&entry) }.expect("an empty ring has room");
}

fn wake(word: &AtomicU32, flags: u32) {
    // SAFETY: the word is valid.
    unsafe { libc::syscall(SYS_FUTEX_WAKE, word.as_ptr(), ANY, 1, FUTEX2_SIZE_U32 | flags) };
}

/// Wake-ups from another thread, one after the other, until one is lost or an operation fails.
fn rounds(kind: &str, flags: u32, rounds: u32) -> Seen {
    // Never freed: an operation that was lost may still look at its word.
    let shared: &'static Shared = Box::leak(Box::new(Shared {
        word: AtomicU32::new(0),
        armed: AtomicU32::new(0),
        rung_ns: AtomicU64::new(0),
    }));
    let start = Instant::now();
    let now = move || start.elapsed().as_nanos() as u64;
    let waker = std::thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 1..=rounds {
            loop {
                match shared.armed.load(Acquire) {
                    STOP => return,
                    armed if armed == round => break,
                    _ => std::thread::yield_now(),
                }
            }
            // From before the sleep to well within it.
            std::thread::sleep(Duration::from_micros(random.u64(0..1500)));
            shared.rung_ns.store(now(), Relaxed);
            shared.word.store(round, Release);
            wake(&shared.word, flags);
        }
    });
    let mut ring = ring(kind).expect("a ring of this kind was had before");
    let mut seen = Seen { late: 0, lost: 0, error: None, worst: Duration::ZERO };
    for round in 1..=rounds {
        arm(&mut ring, &shared.word, round - 1, flags);
        shared.armed.store(round, Release);
        let mut done = wait(&mut ring, PATIENCE);
        let mut looks = 0;
        while done.is_none() && looks < FOREVER.as_millis() / PATIENCE.as_millis() {
            done = wait(&mut ring, PATIENCE);
            looks += 1;
        }
        seen.error = done.and_then(error_of);
        if seen.error.is_some() {
            break;
        }
        let took = Duration::from_nanos(now().saturating_sub(shared.rung_ns.load(Relaxed)));
        seen.lost += u32::from(done.is_none());
        seen.late += u32::from(took >= LATE);
        seen.worst = seen.worst.max(took);
        if done.is_none() {
            break;
        }
    }
    shared.armed.store(STOP, Release);
    waker.join().expect("the waker ends");
    seen
}

/// A wait that was armed before the process had a second thread: its
/// result, if the wake-up ever comes.
fn armed_alone(flags: u32) -> Option<i32> {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let mut ring = ring("plain").expect("a ring was had before");
    arm(&mut ring, &WORD, 0, flags);
    ring.submit().expect("io_uring_enter");
    let waker = std::thread::spawn(move || {
        WORD.store(1, Release);
        wake(&WORD, flags);
    });
    waker.join().expect("the waker ends");
    wait(&mut ring, FOREVER)
}

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    if let Some(flags) = argument.as_deref().and_then(|it| it.strip_prefix("alone:")) {
        return ExitCode::from(match armed_alone(flags.parse().unwrap_or(0)) {
            None => LOST,
            Some(result) => error_of(result).map_or(0, |error| {
                eprintln!("late-futex-wakes: the wait ended with {error}");
                FAILED
            }),
        });
    }
    let number = argument.and_then(|it| it.parse().ok()).unwrap_or(2000);
    let mut probe = io_uring::Probe::new();
    let known = IoUring::new(8).and_then(|ring| ring.submitter().register_probe(&mut probe));
    if known.is_err() || !probe.is_supported(opcode::FutexWait::CODE) {
        println!("late-futex-wakes: not there: no IORING_OP_FUTEX_WAIT (kernel 6.7 brought it)");
        return ExitCode::SUCCESS;
    }
    for kind in RINGS {
        if let Err(error) = ring(kind) {
            println!("late-futex-wakes: {kind}: not there: {error}");
            continue;
        }
        for (key, flags) in KEYS {
            let Seen { late, lost, error, worst } = rounds(kind, flags, number);
            let ended = match error {
                Some(error) => format!(", and ended early: a wait was completed with {error}"),
                None if lost > 0 => ", and ended there".to_owned(),
                None => String::new(),
            };
            println!(
                "late-futex-wakes: {kind} {key}: {late} of {number} late, {lost} lost, worst {:.2} ms{ended}",
                worst.as_secs_f64() * 1e3
            );
        }
    }
    for (key, flags) in KEYS {
        // Each in a process that never had two threads.
        let own = std::env::current_exe().expect("/proc is mounted");
        let codes: Vec<Option<i32>> = (0..20)
            .map(|_| std::process::Command::new(&own).arg(format!("alone:{flags}")).status().ok()?.code())
            .collect();
        let lost = codes.iter().filter(|&&code| code == Some(LOST.into())).count();
        let failed = codes.iter().filter(|&&code| code != Some(0)).count() - lost;
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        println!("late-futex-wakes: armed before the second thread, {key}: {lost} of 20 lost{failed}");
    }
    ExitCode::SUCCESS
}

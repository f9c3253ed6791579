// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of known wake graph. Each thread counts what it does; how
//! often it slept the kernel counts for it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Notifications of a program, and the time between two, in which the waiter falls asleep.
const ROUNDS: u32 = 600;
const GAP: Duration = Duration::from_micros(300);

/// Plays what is called `kind`, and returns what it counted: of each named thread its sleeps, or
/// what else the name says.
pub(super) fn play(kind: &str) -> Vec<(String, u64)> {
    match kind {
        "futex" => futex(ROUNDS),
        "for-ever" => futex(u32::MAX),
        "changed" => changed(),
        "condition-variable" => condition_variable(),
        "eventfd" => eventfd(false),
        "eventfd-epoll" => eventfd(true),
        "pipe" => {
            let (reader, writer) = std::io::pipe().unwrap();
            stream(reader, writer)
        }
        "socketpair" => {
            let (reader, writer) = UnixStream::pair().unwrap();
            stream(reader, writer)
        }
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            writer.set_nodelay(true).unwrap();
            stream(listener.accept().unwrap().0, writer)
        }
        "io-uring" => io_uring(),
        "signal" => signal(),
        "timer" => vec![named(named_thread("waiter", || counted(|| (0..ROUNDS).for_each(|_| nap()))))],
        "chain" => chain(),
        "herd" => herd(),
        "rescue" => rescue(),
        "convoy" => convoy(),
        "spin" => vec![("asked".to_owned(), asks())],
        kind => panic!("no program is called {kind}"),
    }
}

fn nap() {
    std::thread::sleep(GAP);
}

fn named_thread<T: Send + 'static>(name: &str, act: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::Builder::new().name(name.to_owned()).spawn(act).unwrap()
}

/// What the thread counted, by its name.
fn named(thread: JoinHandle<u64>) -> (String, u64) {
    (thread.thread().name().unwrap().to_owned(), thread.join().unwrap())
}

/// How often the calling thread gave its CPU away since it began.
fn switches() -> u64 {
    // SAFETY: all zeroes is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` lives through the call.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) }, 0);
    u64::try_from(usage.ru_nvcsw).unwrap()
}

/// How often the calling thread gave its CPU away while it did `act`.
fn counted(act: impl FnOnce()) -> u64 {
    let before = switches();
    act();
    switches() - before
}

/// A waiter, and a waker that notifies it over and over.
fn pair(
    waiter: impl FnOnce() + Send + 'static,
    mut notify: impl FnMut() + Send + 'static,
    rounds: u32,
) -> Vec<(String, u64)> {
    let waiter = named_thread("waiter", || counted(waiter));
    let waker = named_thread("waker", move || {
        for _ in 0..rounds {
            nap();
            notify();
        }
    });
    waker.join().unwrap();
    vec![named(waiter)]
}

fn futex_wait(word: &AtomicU32, seen: u32, limit: Option<Duration>) -> i64 {
    let limit = limit.map(|limit| libc::timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the limit live through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, seen, limit) }
}

fn futex_wake(word: &AtomicU32, most: i32) -> i64 {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, most) }
}

fn futex(rounds: u32) -> Vec<(String, u64)> {
    let word = Arc::new(AtomicU32::new(0));
    let other = Arc::clone(&word);
    let waits = move || loop {
        match other.load(SeqCst) {
            seen if seen >= rounds => break,
            seen => {
                futex_wait(&other, seen, None);
            }
        }
    };
    let notifies = move || {
        word.fetch_add(1, SeqCst);
        futex_wake(&word, 1);
    };
    pair(waits, notifies, rounds)
}

/// What a changed run's environment has more: a part of what its threads come to be.
pub(super) const CHANGED: &str = "DOORBELL_PLANTED_CHANGED";

/// How the calling thread is scheduled.
fn state() -> String {
    use rustix::thread::{CpuSet, current_timer_slack, gettid, sched_getaffinity};
    let set = sched_getaffinity(None).unwrap();
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).count();
    // SAFETY: it takes a number, of which 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    let nice = rustix::process::getpriority_process(Some(gettid())).unwrap();
    format!("cpus:{cpus} policy:{policy} nice:{nice} slack:{}", current_timer_slack().unwrap())
}

/// As `futex`, and of a changed run until both threads have become what it says. Says of each run by
/// itself which kind it was, and what waiter, waker and the thread that made them were in the end.
fn changed() -> Vec<(String, u64)> {
    let wanted = std::env::var(CHANGED).ok();
    let is_changed = wanted.is_some();
    let came = move || wanted.as_ref().is_none_or(|wanted| state().split(' ').any(|part| part == wanted));
    let (word, over) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (other, ends, both_came) = (Arc::clone(&word), Arc::clone(&over), came.clone());
    let waiter = named_thread("waiter", move || {
        let mut rounds = 0;
        while rounds < ROUNDS {
            futex_wait(&other, other.load(SeqCst), None);
            rounds += u32::from(both_came());
        }
        ends.store(true, SeqCst);
        state()
    });
    let waker = named_thread("waker", move || {
        while !over.load(SeqCst) || !came() {
            nap();
            word.fetch_add(1, SeqCst);
            futex_wake(&word, 1);
        }
        state()
    });
    let threads = [waiter.join().unwrap(), waker.join().unwrap(), state()];
    let runs = std::path::PathBuf::from(std::env::var(super::COUNTS).unwrap()).with_extension("runs");
    let mut runs = std::fs::File::options().append(true).create(true).open(runs).unwrap();
    writeln!(runs, "{is_changed},{}", threads.join(",")).unwrap();
    Vec::new()
}

fn condition_variable() -> Vec<(String, u64)> {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let other = Arc::clone(&shared);
    let waits = move || {
        let (count, changed) = &*other;
        drop(changed.wait_while(count.lock().unwrap(), |count| *count < ROUNDS).unwrap());
    };
    let notifies = move || {
        *shared.0.lock().unwrap() += 1;
        shared.1.notify_one();
    };
    pair(waits, notifies, ROUNDS)
}

fn eventfd(epoll: bool) -> Vec<(String, u64)> {
    // SAFETY: it takes two numbers; the descriptor it makes is nobody else's.
    let (event, set) = unsafe {
        let event = libc::eventfd(0, libc::EFD_CLOEXEC | if epoll { libc::EFD_NONBLOCK } else { 0 });
        (OwnedFd::from_raw_fd(event), OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)))
    };
    let event = Arc::new(event);
    let other = Arc::clone(&event);
    let waits = move || {
        let mut ready = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: both descriptors are open, and `ready` lives through the call.
        unsafe { libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, other.as_raw_fd(), &raw mut ready) };
        let mut seen = 0;
        while seen < u64::from(ROUNDS) {
            if epoll {
                // SAFETY: there is room for the one event that is asked for.
                unsafe { libc::epoll_wait(set.as_raw_fd(), &raw mut ready, 1, -1) };
            }
            let mut count = 0_u64;
            // SAFETY: eight bytes are there to be written.
            if unsafe { libc::read(other.as_raw_fd(), (&raw mut count).cast(), 8) } == 8 {
                seen += count;
            }
        }
    };
    let notifies = move || {
        let one = 1_u64;
        // SAFETY: eight bytes are there to be read.
        unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
    };
    pair(waits, notifies, ROUNDS)
}

fn stream(
    mut reader: impl Read + Send + 'static,
    mut writer: impl Write + Send + 'static,
) -> Vec<(String, u64)> {
    let waits = move || {
        let (mut bytes, mut seen) = ([0; 64], 0);
        while seen < ROUNDS as usize {
            seen += reader.read(&mut bytes).unwrap();
        }
    };
    pair(waits, move || writer.write_all(&[1]).unwrap(), ROUNDS)
}

/// A waiter that has a ring read from a pipe, and waits for the completion.
fn io_uring() -> Vec<(String, u64)> {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let waits = move || {
        let mut ring = io_uring::IoUring::new(4).unwrap();
        let (mut bytes, mut seen) = ([0_u8; 64], 0);
        while seen < ROUNDS {
            let from = io_uring::types::Fd(reader.as_raw_fd());
            let read = io_uring::opcode::Read::new(from, bytes.as_mut_ptr(), 64).build();
            // SAFETY: pipe and bytes are there until the completion, which is waited for.
            unsafe { ring.submission().push(&read).unwrap() };
            ring.submit_and_wait(1).unwrap();
            let done = ring.completion().next().unwrap().result();
            seen += u32::try_from(done).unwrap();
        }
    };
    pair(waits, move || writer.write_all(&[1]).unwrap(), ROUNDS)
}

fn signal() -> Vec<(String, u64)> {
    // SAFETY: all zeroes is a set of signals, and the set lives through the calls; threads that are
    // made later inherit what is blocked.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    let waiter = named_thread("waiter", move || {
        counted(|| {
            while !told.load(SeqCst) {
                let mut number = 0;
                // SAFETY: both live through the call.
                unsafe { libc::sigwait(&raw const set, &raw mut number) };
            }
        })
    });
    let thread = waiter.as_pthread_t();
    let waker = named_thread("waker", move || {
        for round in 0..ROUNDS {
            nap();
            over.store(round + 1 == ROUNDS, SeqCst);
            // SAFETY: the thread is not joined yet.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        }
    });
    waker.join().unwrap();
    vec![named(waiter)]
}

fn chain() -> Vec<(String, u64)> {
    const STAGES: usize = 8;
    let pipes: Vec<_> = (0..STAGES).map(|_| std::io::pipe().unwrap()).collect();
    let (mut readers, mut writers): (Vec<_>, Vec<_>) =
        pipes.into_iter().map(|(reader, writer)| (Some(reader), Some(writer))).unzip();
    let mut first = writers[0].take().unwrap();
    // Each message goes alone: where stages wait for a CPU, none finds several, and sleeps for each.
    let (mut arrived, last) = std::io::pipe().unwrap();
    writers.push(Some(last));
    let stages: Vec<_> = (0..STAGES)
        .map(|stage| {
            let mut reader = readers[stage].take().unwrap();
            let mut writer = writers[stage + 1].take().unwrap();
            named_thread(&format!("stage{stage}"), move || {
                counted(|| {
                    let (mut bytes, mut seen) = ([0; 64], 0);
                    while seen < ROUNDS as usize {
                        let some = reader.read(&mut bytes).unwrap();
                        seen += some;
                        writer.write_all(&bytes[..some]).unwrap();
                    }
                })
            })
        })
        .collect();
    for _ in 0..ROUNDS {
        nap();
        first.write_all(&[1]).unwrap();
        arrived.read_exact(&mut [0]).unwrap();
    }
    stages.into_iter().map(named).collect()
}

fn herd() -> Vec<(String, u64)> {
    const WAITERS: usize = 6;
    let word = Arc::new(AtomicU32::new(0));
    let waiters: Vec<_> = (0..WAITERS)
        .map(|_| {
            let word = Arc::clone(&word);
            named_thread("waiter", move || {
                while let seen @ 0..ROUNDS = word.load(SeqCst) {
                    futex_wait(&word, seen, None);
                }
            })
        })
        .collect();
    let waker = named_thread("waker", move || {
        let (mut calls, mut all) = (0, 0);
        for _ in 0..ROUNDS {
            // All are asleep by then, on most machines.
            std::thread::sleep(4 * GAP);
            word.fetch_add(1, SeqCst);
            let woken = u64::try_from(futex_wake(&word, i32::MAX)).unwrap();
            if woken >= 3 {
                (calls, all) = (calls + 1, all + woken);
            }
        }
        (calls, all)
    });
    let (calls, woken) = waker.join().unwrap();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    vec![("calls".to_owned(), calls), ("woken".to_owned(), woken)]
}

/// A waker that forgets to wake: its messages are found when the wait runs out.
fn rescue() -> Vec<(String, u64)> {
    const MESSAGES: u64 = 100;
    let word = Arc::new(AtomicU32::new(0));
    let message = Arc::new(AtomicBool::new(false));
    let (mut sink, there) =
        (std::fs::File::options().write(true).open("/dev/null").unwrap(), Arc::clone(&message));
    let waiter = named_thread("waiter", move || {
        let (mut rescued, mut perhaps) = (0, 0);
        let (mut waits, mut before) = (0, switches());
        while rescued < MESSAGES {
            let result = futex_wait(&word, 0, Some(Duration::from_millis(2)));
            waits += 1;
            if there.swap(false, SeqCst) {
                assert_eq!(result, -1, "nobody wakes it");
                sink.write_all(b"1").unwrap();
                // On a busy machine the time may be over before the thread sleeps: then nothing
                // wakes it. Which of the waits since the last message that was is not known: a
                // question after each wait would be the next call, which is what tells a rescue.
                let all_slept = switches() - before == waits;
                *(if all_slept { &mut rescued } else { &mut perhaps }) += 1;
                (waits, before) = (0, switches());
            }
        }
        [("rescued", rescued), ("perhaps", perhaps)].map(|(name, count)| (name.to_owned(), count))
    });
    // For as long as the process lives.
    named_thread("waker", move || {
        for _ in 0..u64::MAX {
            std::thread::sleep(Duration::from_millis(5));
            message.store(true, SeqCst);
        }
    });
    waiter.join().unwrap().to_vec()
}

/// Threads that fight over one lock; none has it twice in a row, or one of them might be done with
/// all its rounds before another one has come.
fn convoy() -> Vec<(String, u64)> {
    const THREADS: usize = 4;
    let lock = Arc::new(Mutex::new(THREADS));
    let done = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|own| {
            let (lock, done) = (Arc::clone(&lock), Arc::clone(&done));
            named_thread("locker", move || {
                let mut rounds = 0;
                while rounds < ROUNDS {
                    let mut last = lock.lock().unwrap();
                    let may = *last != own || done.load(SeqCst) == THREADS as u32 - 1;
                    if may {
                        *last = own;
                        rounds += 1;
                        // Whoever sleeps with it lets all others run into it.
                        nap();
                    }
                    drop(last);
                    if !may {
                        nap();
                    }
                }
                done.fetch_add(1, SeqCst);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    vec![("threads".to_owned(), THREADS as u64)]
}

/// A thread that asks over and over whether there is something to do; how often.
fn asks() -> u64 {
    const TIMES: u64 = 20_000;
    let asker = named_thread("asker", || {
        // SAFETY: it takes a number; the descriptor it makes is nobody else's.
        let set = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
        for _ in 0..TIMES {
            let mut ready = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: there is room for the one event that is asked for.
            unsafe { libc::epoll_wait(set.as_raw_fd(), &raw mut ready, 1, 0) };
        }
        TIMES
    });
    asker.join().unwrap()
}

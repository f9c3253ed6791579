// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that dies at each of its writes to shared memory, and at random moments.

use crate::alone::alone;
use crate::child::{came_to_true, in_a_child};
use crate::other::{FOREVER, fork, message, number, segment, start};
use doorbell::channel::{AttachError, Receiver, RecvError, SendError, Sender};
use doorbell::peer::Trusted;
use doorbell::wait::Adaptive;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Dies at random moments: before it attached, with requests and
/// answers under way, while it waits. `DOORBELL_KILLS` sets how often.
/// In a process of its own, where nobody else opens and closes files.
#[test]
fn whenever_the_other_process_is_killed_the_survivor_is_told_and_nothing_is_left_over() {
    let name = "death::whenever_the_other_process_is_killed_the_survivor_is_told_and_nothing_is_left_over";
    alone(name, kill_again_and_again);
}

fn kill_again_and_again() {
    let kills = std::env::var("DOORBELL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(150);
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut before = usize::MAX;
    for round in 0..kills {
        // What is opened once is open by then. The thread that told of the last death may still hold that
        // round's segment: the least of several counts.
        if (5..12).contains(&round) {
            before = before.min(open());
        }
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        survive(Duration::from_micros(seed % 4000), seed & (1 << 40) == 0);
    }
    let begun = Instant::now();
    while open() > before {
        assert!(begun.elapsed() < FOREVER, "descriptors leak: {before} were open at first, then {}", open());
        std::thread::yield_now();
    }
}

/// Talks to a process that is killed after `life`. If `full`, without
/// listening, until it waits for room as we do.
fn survive(life: Duration, full: bool) {
    let segment = segment(2, 2, 256);
    let (connection, other) = start("echo", &segment);
    let mut requests: Sender = Sender::attach(&connection, 0).unwrap();
    let mut answers: Receiver = Receiver::attach(&connection, 1).unwrap();
    let (longest, gone) = (requests.longest(), connection.peer().id());
    let pid = Pid::from_child(&other.0);
    let (mut sent, mut answered) = (0, 0);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            std::thread::sleep(life);
            kill_process(pid, Signal::KILL).unwrap();
        });
        let refused = loop {
            match requests.send_timeout(&message(sent, longest), FOREVER) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
            if full {
                continue;
            }
            match answers.recv_timeout(FOREVER) {
                Ok(answer) => {
                    assert_eq!(number(&answer.expect("hung").to_vec(), longest), answered);
                    answered += 1;
                }
                Err(error) => assert_eq!(error, RecvError::PeerGone(gone)),
            }
        };
        assert_eq!(refused, SendError::PeerGone(gone));
        killer.join().unwrap();
    });
    // All that was committed, in order, and then its end.
    let told = loop {
        match answers.recv_timeout(FOREVER) {
            Ok(answer) => {
                assert_eq!(number(&answer.expect("hung").to_vec(), longest), answered);
                answered += 1;
            }
            Err(error) => break error,
        }
    };
    assert_eq!(told, RecvError::PeerGone(gone));
    assert!(answered <= sent);
}

/// The state of the thread that hears of deaths, as in /proc/PID/stat.
fn watcher_state() -> Option<char> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| stat.split_once("(doorbell-watch) ")?.1.chars().next()).next()
}

/// It was told again and again of the socket that had hung up, for as
/// long as the connection was kept.
#[test]
fn the_thread_that_has_told_of_a_death_sleeps_though_the_connection_is_kept() {
    let segment = segment(2, 2, 256);
    let (connection, mut other) = start("echo", &segment);
    let mut answers: Receiver = Receiver::attach(&connection, 1).unwrap();
    other.kill();
    assert_eq!(answers.recv_timeout(FOREVER).unwrap_err(), RecvError::PeerGone(connection.peer().id()));
    // It may have other deaths to tell of, from other tests; and to be found at work once says nothing.
    let begun = Instant::now();
    let mut asleep = 0;
    while asleep < 20 {
        assert!(begun.elapsed() < FOREVER, "it never slept");
        std::thread::sleep(Duration::from_millis(1));
        asleep = if watcher_state() == Some('S') { asleep + 1 } else { 0 };
    }
}

/// A forked process has the same epoll: what the child took out of
/// it, the parent never heard of again.
#[test]
fn a_death_is_told_though_a_forked_child_has_dropped_its_copies() {
    let segment = segment(2, 2, 256);
    let (connection, mut other) = start("echo", &segment);
    let answers: Receiver = Receiver::attach(&connection, 1).unwrap();
    let mut held = Some((answers, connection));
    assert!(in_a_child(fork, || {
        drop(held.take());
        true
    }));
    let (mut answers, connection) = held.unwrap();
    assert_eq!(Receiver::<_, Adaptive>::attach(&connection, 1).unwrap_err(), AttachError::Taken { lane: 1 });
    other.kill();
    let told = answers.recv_timeout(FOREVER).map(|message| message.is_some());
    assert_eq!(told, Err(RecvError::PeerGone(connection.peer().id())));
}

/// It wrote where it had been at the fork into shared memory: the
/// sender called that a lie, or found no room.
#[test]
fn a_forked_child_that_drops_its_copies_says_nothing_of_what_was_received() {
    let segment = segment(1, 1, 256);
    let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
    let mut receiver: Receiver<Trusted> = Receiver::at(&segment, 0).unwrap();
    for _ in 0..3 {
        sender.send(&[0; 8]).unwrap();
    }
    // The first is released at once, the second held back: not yet an eighth of the ring.
    for _ in 0..2 {
        receiver.recv().unwrap().release();
    }
    // With this one it is, in the child too.
    let message = receiver.recv().unwrap();
    let (gone_on, go_on) = rustix::pipe::pipe().unwrap();
    let child = fork();
    if child == 0 {
        let read = rustix::io::read(&gone_on, &mut [0; 1]);
        message.release();
        drop(receiver);
        // SAFETY: no precondition.
        unsafe { libc::_exit(i32::from(read != Ok(1))) };
    }
    message.release();
    for number in 0..10_u64 {
        sender.send(&number.to_ne_bytes()).unwrap();
        assert_eq!(*receiver.recv().unwrap(), number.to_ne_bytes());
    }
    assert!(receiver.try_recv().unwrap().is_none());
    assert_eq!(rustix::io::write(&go_on, &[0]), Ok(1));
    assert!(came_to_true(child));
    for number in 0..12_u64 {
        assert_eq!(sender.try_send(&number.to_ne_bytes()), Ok(()), "message {number} of an empty ring");
    }
    for number in 0..12_u64 {
        assert_eq!(*receiver.recv().unwrap(), number.to_ne_bytes());
    }
}

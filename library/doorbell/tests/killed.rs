// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that share memory without a connection, and are killed
//! with an end of a channel in their hands.

#![expect(clippy::unwrap_used, reason = "a test")]

use doorbell::channel::{Gather, GatherError, Lanes, Receiver, RecvError, SendError, Sender};
use doorbell::raw::{Offer, Segment};
use doorbell::wait::Futex;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// Longer than anything takes.
const FOR_EVER: Duration = Duration::from_secs(60);

/// A forked child, which is killed and reaped when this is dropped.
struct Child {
    pid: Pid,
    ready: UnixStream,
}

impl Child {
    /// One that runs `run`, says that it has, and holds what came of it until it is killed.
    fn with<R>(run: impl FnOnce() -> R) -> Self {
        let (ready, mut childs) = UnixStream::pair().unwrap();
        // SAFETY: the child takes no locks but the library's and the
        // allocator's, which a fork waits for, and never returns.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: no precondition. Who forgets to kill it has a minute.
            unsafe { libc::alarm(60) };
            let _held = run();
            childs.write_all(b".").unwrap();
            loop {
                thread::park();
            }
        }
        Self { pid: Pid::from_raw(child).unwrap(), ready }
    }

    /// Waits until it has run what it was to run.
    fn ready(mut self) -> Self {
        self.ready.read_exact(&mut [0]).unwrap();
        self
    }

    fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        kill_process(self.pid, Signal::KILL).unwrap();
        waitpid(Some(self.pid), WaitOptions::empty()).unwrap();
    }
}

fn segment(lanes: u32, receivers: u32) -> Segment {
    Segment::for_children(&Offer::of_lanes(Lanes::new(lanes, receivers, 4096).unwrap())).unwrap()
}

/// It waited for ever.
#[test]
fn a_receiver_gets_what_a_killed_child_sent_and_hears_of_its_death_and_of_its_successors() {
    let segment = segment(1, 1);
    let mut receiver = Receiver::at(&segment, 0).unwrap();
    for _ in 0..3 {
        let child = Child::with(|| {
            let mut sender = Sender::at(&segment, 0).unwrap();
            sender.send(b"one").unwrap();
            sender
        })
        // Until it has come, the end of the one before it is told.
        .ready();
        assert_eq!(receiver.recv_timeout(FOR_EVER).unwrap().expect("hung").to_vec(), b"one");
        assert!(receiver.try_recv().unwrap().is_none(), "it lives");
        let number = child.number();
        drop(child);
        let told = receiver.recv_timeout(FOR_EVER);
        assert!(matches!(told, Err(RecvError::PeerGone(peer)) if peer.pid == number), "{told:?}");
    }
}

/// One that sleeps is not looking: it has to be woken when a sender
/// comes, whose death it is to hear of.
#[test]
fn a_receiver_that_slept_before_its_sender_came_is_told_when_that_is_killed_without_a_word() {
    let segment = segment(1, 1);
    let mut receiver: Receiver<_, Futex> = Receiver::at_waiting_by(&segment, 0).unwrap();
    let (mut go, mut gone) = UnixStream::pair().unwrap();
    let child = Child::with(|| {
        gone.read_exact(&mut [0]).unwrap();
        Sender::at(&segment, 0).unwrap()
    });
    let number = child.number();
    // SAFETY: no precondition.
    let waits = unsafe { libc::gettid() };
    let killer = thread::spawn(move || {
        let stat = format!("/proc/self/task/{waits}/stat");
        while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
            thread::yield_now();
        }
        go.write_all(b".").unwrap();
        drop(child.ready());
    });
    let told = receiver.recv_timeout(FOR_EVER);
    assert!(matches!(told, Err(RecvError::PeerGone(peer)) if peer.pid == number), "{told:?}");
    killer.join().unwrap();
}

#[test]
fn a_sender_that_waits_for_room_is_told_when_its_receiver_is_killed() {
    let segment = segment(1, 1);
    let mut sender: Sender<_, Futex> = Sender::at_waiting_by(&segment, 0).unwrap();
    let child = Child::with(|| Receiver::at(&segment, 0).unwrap()).ready();
    let number = child.number();
    while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    let killer = thread::spawn(move || drop(child));
    let told = sender.send_timeout(&[7; 500], FOR_EVER);
    assert!(matches!(told, Err(SendError::PeerGone(peer)) if peer.pid == number), "{told:?}");
    killer.join().unwrap();
    // The next receiver finds what lies there, and room.
    let mut receiver = Receiver::at(&segment, 0).unwrap();
    assert_eq!(receiver.recv_timeout(FOR_EVER).unwrap().expect("hung").len(), 500);
    drop(receiver);
}

#[test]
fn a_gather_tells_whose_lane_it_was_and_goes_on_with_the_others() {
    let segment = segment(2, 1);
    let mut gather = Gather::at(&segment, 0).unwrap();
    let killed = Child::with(|| Sender::at(&segment, 0).unwrap()).ready();
    let _lives = Child::with(|| {
        let mut sender = Sender::at(&segment, 1).unwrap();
        sender.send(b"here").unwrap();
        sender
    });
    let (lane, message) = gather.recv_timeout(FOR_EVER).unwrap().expect("hung");
    assert_eq!((lane, message.to_vec()), (1, b"here".to_vec()));
    drop(killed);
    let told = gather.recv_timeout(FOR_EVER).map(drop);
    assert!(matches!(told, Err(GatherError { lane: Some(0), error: RecvError::PeerGone(_) })), "{told:?}");
    assert!(gather.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
}

/// They stayed a dead process's for ever, if nobody had met it there.
#[test]
fn the_end_and_the_waiter_slot_of_a_killed_child_are_its_successors() {
    let segment = segment(1, 1);
    for _ in 0..2 {
        drop(
            Child::with(|| {
                let mut receiver = Receiver::at(&segment, 0).unwrap();
                receiver.file().unwrap();
                receiver
            })
            .ready(),
        );
    }
    let mut receiver = Receiver::at(&segment, 0).unwrap();
    receiver.file().unwrap();
    // And those of one that lives are not.
    let taken = Child::with(|| {
        assert!(Receiver::at(&segment, 0).is_err());
        Sender::at(&segment, 0).unwrap()
    })
    .ready();
    assert!(Sender::at(&segment, 0).is_err());
    drop(taken);
    Sender::at(&segment, 0).unwrap();
}

#[test]
fn a_child_is_told_when_its_parent_is_killed() {
    let segment = segment(2, 2);
    let (mut told, mut tells) = UnixStream::pair().unwrap();
    // The parent is a child of this process, and has a child of its own.
    let parent = Child::with(|| {
        let sender = Sender::at(&segment, 0).unwrap();
        let mut answers = Receiver::at(&segment, 1).unwrap();
        // SAFETY: as in `Child::with`.
        if unsafe { libc::fork() } == 0 {
            // SAFETY: no precondition.
            unsafe { libc::alarm(60) };
            let mut receiver = Receiver::at(&segment, 0).unwrap();
            Sender::at(&segment, 1).unwrap().send(b"here").unwrap();
            let gone = matches!(receiver.recv_timeout(FOR_EVER), Err(RecvError::PeerGone(_)));
            tells.write_all(&[u8::from(gone)]).unwrap();
            // SAFETY: no precondition.
            unsafe { libc::_exit(0) };
        }
        assert_eq!(answers.recv_timeout(FOR_EVER).unwrap().expect("hung").to_vec(), b"here");
        (sender, answers)
    });
    drop(parent.ready());
    let mut gone = [2];
    told.read_exact(&mut gone).unwrap();
    assert_eq!(gone, [1], "it was not told");
}

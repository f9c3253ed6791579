// SPDX-License-Identifier: MIT OR Apache-2.0
//! An end that a forked child has a copy of stays its parent's: the child's calls fail by name, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test")]

use doorbell::channel::broadcast::{Publisher, WhenSlow};
use doorbell::channel::{Lanes, Receiver, RecvError, SendError, Sender};
use doorbell::raw::{Offer, Segment};

/// Runs `run` in a forked child, and says whether it came to true. A hang ends after a minute.
fn in_a_child(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child takes no locks but the library's, which a fork waits for, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no precondition.
        unsafe { libc::alarm(60) };
        let status = i32::from(!run());
        // SAFETY: no precondition.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: a child of ours, and a valid place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

/// `send` said Ok in the child, and two of four messages were gone.
fn nothing_is_lost(
    mut sender: Sender<doorbell::peer::Trusted>,
    mut receiver: Receiver<doorbell::peer::Trusted>,
) {
    sender.send(b"one").unwrap();
    let refused = in_a_child(|| {
        sender.send(b"lost") == Err(SendError::Forked)
            && sender.try_send(b"lost") == Err(SendError::Forked)
            && sender.push(b"lost") == Err(SendError::Forked)
            && sender.reserve(8).map(drop) == Err(SendError::Forked)
            && receiver.try_recv().map(|message| message.is_some()) == Err(RecvError::Forked)
            && receiver.recv().map(|message| message.len()) == Err(RecvError::Forked)
    });
    assert!(refused, "a child used an end of its parent's");
    sender.send(b"two").unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"one");
    // The child of a process that holds a message, too.
    assert!(in_a_child(|| sender.send(b"lost") == Err(SendError::Forked)));
    assert_eq!(receiver.recv().unwrap().to_vec(), b"two");
    assert!(receiver.try_recv().unwrap().is_none());
    // And of one that is writing a message: its child sent it.
    let mut slot = Some(sender.reserve(5).unwrap());
    slot.as_mut().unwrap().write(0, b"three");
    assert!(in_a_child(|| slot.take().unwrap().commit() == Err(SendError::Forked)));
    assert!(receiver.try_recv().unwrap().is_none());
    slot.take().unwrap().commit().unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"three");
}

#[test]
fn a_child_sends_and_receives_nothing_by_ends_of_its_parents_threads() {
    let (sender, receiver) = doorbell::channel(4096).unwrap();
    nothing_is_lost(sender, receiver);
}

#[test]
fn a_child_sends_and_receives_nothing_by_ends_of_its_parent_in_memory_that_both_share() {
    let offer = Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap());
    let segment = Segment::for_children(&offer).unwrap();
    nothing_is_lost(Sender::at(&segment, 0).unwrap(), Receiver::at(&segment, 0).unwrap());
    let segment = Segment::new(&offer).unwrap();
    nothing_is_lost(Sender::at(&segment, 0).unwrap(), Receiver::at(&segment, 0).unwrap());
}

#[test]
fn a_child_publishes_nothing_and_hears_nothing_by_its_parents_ends() {
    let mut publisher = Publisher::new(4096).unwrap();
    let mut subscriber = publisher.subscribe::<doorbell::wait::Adaptive>(WhenSlow::HoldBack).unwrap();
    publisher.publish(b"one").unwrap();
    let mut heard = Vec::new();
    let refused = in_a_child(|| {
        publisher.publish(b"lost") == Err(SendError::Forked)
            && subscriber.try_recv_into(&mut Vec::new()) == Err(RecvError::Forked)
    });
    assert!(refused, "a child used an end of its parent's");
    publisher.publish(b"two").unwrap();
    for expected in [b"one", b"two"] {
        subscriber.recv_into(&mut heard).unwrap();
        assert_eq!(heard, expected);
    }
}

/// What is meant for a child is taken in the child.
#[test]
fn a_child_takes_an_end_of_its_own_in_memory_that_its_parent_made() {
    let offer = Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap());
    let segment = Segment::for_children(&offer).unwrap();
    let mut receiver = Receiver::at(&segment, 0).unwrap();
    assert!(in_a_child(|| {
        Sender::at(&segment, 0).is_ok_and(|mut sender| sender.send(b"the child's") == Ok(()))
    }));
    assert_eq!(receiver.recv().unwrap().to_vec(), b"the child's");
    assert_eq!(receiver.recv().map(|message| message.len()), Err(RecvError::Closed));
}

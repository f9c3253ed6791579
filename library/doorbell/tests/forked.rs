// SPDX-License-Identifier: MIT OR Apache-2.0
//! An end that a forked child has a copy of stays its parent's: the
//! child's calls fail by name, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "common/child.rs"]
mod child;
#[path = "common/meet.rs"]
mod meet;

use child::{Make, by_fork, came_to_true, child, in_a_child};
use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Gather, Lanes, Receiver, RecvError, SendError, Sender, many};
use doorbell::raw::{Offer, Segment};
use doorbell::rendezvous::{Reason, RendezvousError};
use doorbell::service::{ClientId, Service, ServiceError};
use doorbell::wait::{Futex, Wait, WaitEntry};
use doorbell::{Deadline, WaitError};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longer than anything takes.
const FOR_EVER: Duration = Duration::from_secs(60);

/// With the handlers of `pthread_atfork`, and without: the ways to
/// make a child that has a copy of its parent's memory.
const WAYS: [Make; 2] = [by_fork, by_clone];

/// As `_Fork` does, and whoever makes the system call by hand: no handler runs.
fn by_clone() -> libc::pid_t {
    // SAFETY: as above, but that the child takes no locks at all. Without `CLONE_VM` it is a fork.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    libc::pid_t::try_from(child).unwrap()
}

/// Lanes of as many senders and one receiver.
fn for_children(lanes: u32) -> Segment {
    Segment::for_children(&Offer::of_lanes(Lanes::new(lanes, 1, 4096).unwrap())).unwrap()
}

/// `send` said Ok in the child, and two of four messages were gone.
fn nothing_is_lost(
    make: Make,
    mut sender: Sender<doorbell::peer::Trusted>,
    mut receiver: Receiver<doorbell::peer::Trusted>,
) {
    sender.send(b"one").unwrap();
    let refused = in_a_child(make, || {
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
    assert!(in_a_child(make, || sender.send(b"lost") == Err(SendError::Forked)));
    assert_eq!(receiver.recv().unwrap().to_vec(), b"two");
    assert!(receiver.try_recv().unwrap().is_none());
    // And of one that is writing a message: its child sent it.
    let mut slot = Some(sender.reserve(5).unwrap());
    slot.as_mut().unwrap().write(0, b"three");
    assert!(in_a_child(make, || slot.take().unwrap().commit() == Err(SendError::Forked)));
    assert!(receiver.try_recv().unwrap().is_none());
    slot.take().unwrap().commit().unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"three");
}

#[test]
fn a_child_sends_and_receives_nothing_by_ends_of_its_parents_threads() {
    for make in WAYS {
        let (sender, receiver) = doorbell::channel(4096).unwrap();
        nothing_is_lost(make, sender, receiver);
    }
}

#[test]
fn a_child_sends_and_receives_nothing_by_ends_of_its_parent_in_memory_that_both_share() {
    let offer = Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap());
    for make in WAYS {
        let segment = for_children(1);
        nothing_is_lost(make, Sender::at(&segment, 0).unwrap(), Receiver::at(&segment, 0).unwrap());
        let segment = Segment::new(&offer).unwrap();
        nothing_is_lost(make, Sender::at(&segment, 0).unwrap(), Receiver::at(&segment, 0).unwrap());
    }
}

/// The child's first look was by a load that knew nothing of it: it
/// had the message, and its parent had not.
#[test]
fn the_first_receive_of_a_child_made_without_handlers_leaves_its_parent_the_message() {
    let (mut sender, mut receiver) = doorbell::channel(4096).unwrap();
    for message in [b"one", b"two"] {
        sender.send(message).unwrap();
    }
    // It has received before: nothing is left to look at closely.
    assert_eq!(receiver.recv().unwrap().to_vec(), b"one");
    assert!(in_a_child(by_clone, || receiver.try_recv().map(|message| message.is_some())
        == Err(RecvError::Forked)));
    assert_eq!(receiver.recv().unwrap().to_vec(), b"two");
}

/// As `Futex`, under a name that no other waiter of this process has.
#[derive(Debug, Default)]
struct Named(Futex);

impl Wait for Named {
    const NAME: &'static str = "named";

    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        self.0.wait(entries, ready, deadline)
    }
}

/// A child that dropped its copy took its parent's waiter from among those whom others see.
#[test]
fn a_child_that_drops_its_copies_leaves_its_parent_among_the_counted() {
    let segment = for_children(1);
    let mut receiver = Some(Receiver::<_, Named>::at_waiting_by(&segment, 0).unwrap());
    assert!(in_a_child(by_fork, || {
        drop(receiver.take());
        true
    }));
    let seen = doorbell::counters::process(std::process::id()).unwrap().unwrap().waiters;
    assert!(seen.iter().any(|waiter| waiter.name == Named::NAME), "a child's drop was its parent's");
}

#[test]
fn a_child_publishes_nothing_and_hears_nothing_by_its_parents_ends() {
    for make in WAYS {
        let mut publisher = Publisher::new(4096).unwrap();
        let mut subscriber =
            publisher.subscribe_waiting_by::<doorbell::wait::Adaptive>(WhenSlow::HoldBack).unwrap();
        publisher.publish(b"one").unwrap();
        let mut heard = Vec::new();
        let refused = in_a_child(make, || {
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
}

/// What is meant for a child is taken in the child.
#[test]
fn a_child_takes_an_end_of_its_own_in_memory_that_its_parent_made() {
    let segment = for_children(1);
    let mut receiver = Receiver::at(&segment, 0).unwrap();
    assert!(in_a_child(by_fork, || {
        Sender::at(&segment, 0).is_ok_and(|mut sender| sender.send(b"the child's") == Ok(()))
    }));
    assert_eq!(receiver.recv().unwrap().to_vec(), b"the child's");
    assert_eq!(receiver.recv().map(|message| message.len()), Err(RecvError::Closed));
}

/// A service with a client that nothing is to be received from, children of it in which `used` came
/// to true, and then messages.
fn the_parent_hears_its_client(path: &str, used: impl Fn(&mut Service, ClientId) -> bool) {
    let path = std::env::temp_dir().join(format!("doorbell-forked-{path}-{}.sock", std::process::id()));
    let mut service = doorbell::listen(&path).unwrap();
    let client = std::thread::spawn(move || {
        let mut client = doorbell::connect(&path).unwrap();
        client.send(b"one").unwrap();
        client
    });
    let (who, message) = service.recv().unwrap();
    assert_eq!(message, b"one");
    let mut client = client.join().unwrap();
    for make in WAYS {
        assert!(in_a_child(make, || used(&mut service, who)), "a child used its parent's service");
        // From here on only the client's file tells of its messages.
        assert_eq!(service.try_recv(), Ok(None));
        client.send(b"two").unwrap();
        assert_eq!(service.recv_timeout(FOR_EVER), Ok(Some((who, b"two".to_vec()))));
        service.send(who, b"three").unwrap();
        assert_eq!(client.recv().unwrap(), b"three");
    }
    // This machine may have held one of them up.
    assert!(service.refusals().iter().all(|reason| *reason == Reason::TooSlow), "{:?}", service.refusals());
}

#[test]
fn a_child_that_receives_from_its_parents_service_takes_no_client_from_it() {
    the_parent_hears_its_client("recv", |service, _| {
        service.try_recv() == Err(ServiceError::Wait(WaitError::Forked))
    });
}

#[test]
fn a_child_cannot_hang_up_on_a_client_of_its_parents_service() {
    the_parent_hears_its_client("disconnect", |service, who| !service.disconnect(who));
}

#[test]
fn a_child_meets_nobody_and_answers_nobody_by_its_parents_service() {
    the_parent_hears_its_client("send", |service, who| {
        service.send(who, b"lost") == Err(SendError::Forked)
            && service.accept_timeout(Duration::ZERO).map(drop) == Err(RendezvousError::Forked)
    });
}

/// Returns when the thread `thread` of this process sleeps.
fn until_it_sleeps(thread: libc::pid_t) {
    let stat = format!("/proc/self/task/{thread}/stat");
    while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
        std::thread::yield_now();
    }
}

/// A child that knew an old place said that its sleeping parent wanted to be woken there. `end`
/// sleeps at once, and nowhere else.
fn a_sleeping_parent_is_woken<E>(
    make: Make,
    mut end: E,
    mut send: impl FnMut(&[u8]) + Send,
    listen: impl FnOnce(&mut E) -> Result<bool, WaitError>,
    mut receive: impl FnMut(&mut E) -> Option<Vec<u8>>,
) {
    let (mut go, mut gone) = UnixStream::pair().unwrap();
    let child =
        child(make, || gone.read_exact(&mut [0]).is_ok() && listen(&mut end) == Err(WaitError::Forked));
    for _ in 0..3 {
        send(b"early");
        assert_eq!(receive(&mut end).as_deref(), Some(&b"early"[..]));
    }
    let (wakes, woken) = channel();
    // SAFETY: no precondition.
    let parent = unsafe { libc::gettid() };
    std::thread::scope(|scope| {
        let refused = scope.spawn(move || {
            until_it_sleeps(parent);
            go.write_all(&[0]).unwrap();
            let refused = came_to_true(child);
            send(b"late");
            // At its deadline it looks once more, and would find the message.
            assert_eq!(woken.recv_timeout(FOR_EVER / 2), Ok(()), "nobody woke it");
            refused
        });
        assert_eq!(receive(&mut end).as_deref(), Some(&b"late"[..]));
        // Not if the other has given up.
        let _ = wakes.send(());
        assert!(refused.join().unwrap(), "a child listened at its parent's end");
    });
}

#[test]
fn a_child_that_listens_at_its_parents_receiver_leaves_the_parent_its_wake_up() {
    for make in WAYS {
        let segment = for_children(1);
        let mut sender = Sender::at(&segment, 0).unwrap();
        let receiver: Receiver<_, Futex> = Receiver::at_waiting_by(&segment, 0).unwrap();
        a_sleeping_parent_is_woken(
            make,
            receiver,
            |message| sender.send(message).unwrap(),
            Receiver::listen,
            |receiver| receiver.recv_timeout(FOR_EVER).unwrap().map(|message| message.to_vec()),
        );
    }
}

#[test]
fn a_child_that_listens_at_its_parents_gather_leaves_the_parent_its_wake_up() {
    for make in WAYS {
        let segment = for_children(2);
        let mut sender = Sender::at(&segment, 1).unwrap();
        let gather: Gather<_, Futex> = Gather::at_waiting_by(&segment, 0).unwrap();
        a_sleeping_parent_is_woken(
            make,
            gather,
            |message| sender.send(message).unwrap(),
            Gather::listen,
            |gather| gather.recv_timeout(FOR_EVER).unwrap().map(|(_, message)| message.to_vec()),
        );
    }
}

#[test]
fn a_child_that_listens_at_its_parents_subscriber_leaves_the_parent_its_wake_up() {
    for make in WAYS {
        let segment = Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 64).unwrap())).unwrap();
        let (connection, joined) = meet::meet(&std::sync::Arc::new(segment));
        let mut publisher: Publisher = Publisher::new(4096).unwrap();
        publisher.admit(&connection, 0, WhenSlow::HoldBack).unwrap();
        let mut subscriber: Subscriber<_, Futex> = Subscriber::join_within(&joined, 0, 1 << 20).unwrap();
        // With a waiter slot of its own: the child would get none.
        subscriber.file().unwrap();
        a_sleeping_parent_is_woken(
            make,
            subscriber,
            |message| publisher.publish(message).unwrap(),
            Subscriber::listen,
            |subscriber| {
                let mut message = Vec::new();
                let deadline = Some(Deadline::after(FOR_EVER));
                subscriber.recv_into_deadline(&mut message, deadline).unwrap().map(|_| message)
            },
        );
    }
}

#[test]
fn a_child_gets_no_file_of_its_parents_ends() {
    let (mut sender, mut receiver) = doorbell::channel(4096).unwrap();
    let (_senders, mut gather) = many(1, 4096).unwrap();
    let mut publisher = Publisher::new(4096).unwrap();
    let mut subscriber =
        publisher.subscribe_waiting_by::<doorbell::wait::Adaptive>(WhenSlow::HoldBack).unwrap();
    for make in WAYS {
        assert!(in_a_child(make, || {
            let refused = Err(WaitError::Forked);
            sender.file().map(drop) == refused
                && sender.listen(1).map(drop) == refused
                && receiver.file().map(drop) == refused
                && gather.files().map(drop) == refused
                && subscriber.file().map(drop) == refused
                && publisher.listen(1).map(drop) == refused
        }));
    }
}

/// It was registered with the runtime first, and had its parent's waiter slot by then.
#[cfg(feature = "tokio")]
#[test]
fn a_child_that_would_await_its_parents_end_takes_no_waiter_slot_for_it() {
    let segment = for_children(1);
    let mut receiver = Some(Receiver::at(&segment, 0).unwrap());
    assert!(in_a_child(by_fork, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let end = receiver.take().unwrap();
        runtime.block_on(async { doorbell::Async::new(end).map(drop) }) == Err(WaitError::Forked)
    }));
    // There is one.
    receiver.unwrap().file().unwrap();
}

/// What it took by a handle that was made before the fork it never gave back.
#[test]
fn a_child_gives_back_the_waiter_slot_that_it_took_by_its_parents_bell() {
    let segment = Segment::for_children(&Offer { bells: 1, eventfds: 1, ..Offer::default() }).unwrap();
    let mut bell = segment.bell(0);
    assert!(in_a_child(by_fork, || bell.take().unwrap().into_fd().is_ok()));
    bell.unwrap().into_fd().unwrap();
}

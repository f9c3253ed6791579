// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaving in order: connections and ends dropped in whichever order, and what the others are told.

use crate::child::{came_to_true, child, in_a_child};
use crate::meet::{meet, meet_as, try_meet};
use crate::other::{FOREVER, fork, segment, start};
use doorbell::channel::broadcast::{Ended, JoinError, Publisher, Subscriber, WhenSlow};
use doorbell::channel::{AttachError, Gather, Lanes, Receiver, RecvError, SendError, Sender};
use doorbell::peer::{PeerId, Trusted, Untrusted};
use doorbell::rendezvous::{Connection, Join, Offer, Reason, RendezvousError, Segment, socket};
use doorbell::wait::{Adaptive, Eventfd, Futex};
use doorbell::{Bell, WaitError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Returns when all that hung up before this was called has been told to the host of `segment`: its
/// watcher hears them in turn.
fn wait_for_earlier_hang_ups(segment: &Arc<Segment>) {
    let mut bell = segment.bell_waiting_by::<Futex>(0).unwrap();
    let (host, joined) = meet(segment);
    drop(joined);
    loop {
        match bell.wait_timeout(FOREVER) {
            Err(WaitError::PeerGone(gone)) if gone == host.peer().id() => return,
            Err(WaitError::PeerGone(_)) => {}
            other => panic!("hung, or {other:?}"),
        }
    }
}

fn taken<T>(result: Result<T, AttachError>) -> bool {
    match result.map(drop) {
        Ok(()) => false,
        Err(AttachError::Taken { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

/// The connection went first and hung up, the host gave the end away, and two held it.
#[test]
fn an_end_that_outlives_its_connection_is_given_to_nobody_until_it_is_dropped() {
    let segment = segment(2, 2, 256);
    let ((_first, one), (_second, two)) = (meet(&segment), meet(&segment));
    let mut sender: Sender = Sender::attach(&one, 0).unwrap();
    let mut receiver: Receiver = Receiver::attach(&one, 1).unwrap();
    receiver.file().unwrap();
    drop(one);
    wait_for_earlier_hang_ups(&segment);
    assert!(taken(Sender::<_, Adaptive>::attach(&two, 0)));
    assert!(taken(Receiver::<_, Adaptive>::attach(&two, 1)));
    let mut host: Receiver<Untrusted, Adaptive> = Receiver::attach(&_first, 0).unwrap();
    sender.send(b"still here").unwrap();
    assert_eq!(host.recv().unwrap().to_vec(), b"still here");
    drop(sender);
    assert_eq!(host.recv().unwrap_err(), RecvError::Closed);
    assert!(!taken(Sender::<_, Adaptive>::attach(&two, 0)), "the word says that it was left");
    let slots = &segment.state(1).unwrap().record().slot_holders;
    assert_ne!(slots[0].load(std::sync::atomic::Ordering::Relaxed), 0, "the slot is the receiver's");
    drop(receiver);
    assert_eq!(slots[0].load(std::sync::atomic::Ordering::Relaxed), 0);
}

/// As above, for ends that were taken by way of the segment.
#[test]
fn an_end_taken_at_the_segment_of_a_connection_keeps_the_connection_too() {
    let segment = segment(1, 1, 256);
    let trusted = || meet_as::<Trusted>(&segment);
    let ((_first, one), (_second, two)) = (trusted(), trusted());
    let joined = Arc::clone(one.segment());
    let late: Gather<Trusted> = Gather::at(&joined, 0).unwrap();
    drop(one);
    // A rendezvous in between: its end is heard after that of the first would have been.
    let mut bell = segment.bell_waiting_by::<Futex>(0).unwrap();
    let (third, three) = trusted();
    drop(three);
    assert_eq!(bell.wait_timeout(FOREVER), Err(WaitError::PeerGone(third.peer().id())), "and nobody else");
    assert!(taken(Receiver::<_, Adaptive>::attach(&two, 0)));
    drop(late);
    assert!(!taken(Receiver::<_, Adaptive>::attach(&two, 0)));
    // Now nothing is left that could keep it.
    let refused = Receiver::<Trusted>::at(&joined, 0).unwrap_err();
    assert_eq!(refused, AttachError::HungUp);
    // SAFETY: a thread of this program, which follows the protocol.
    let (hosting, joining) = try_meet::<Trusted>(&joined, unsafe { Join::of() });
    assert_eq!(hosting.unwrap_err(), RendezvousError::HungUp);
    assert_eq!(joining.unwrap_err(), RendezvousError::Refused(Reason::HungUp));
}

/// Its waiter slot was given away while it waited there: two waited
/// for one token, and one of them slept on.
#[test]
fn a_bell_with_an_eventfd_slot_that_outlives_its_connection_keeps_the_slot() {
    let segment = Arc::new(Segment::new(&Offer::default()).unwrap());
    let trusted = || meet_as::<Trusted>(&segment);
    let (first, one) = trusted();
    let mut seated: Bell<Eventfd> = one.bell_waiting_by(0).unwrap();
    let (mut late, mut seatless): (Bell<Eventfd>, Bell<Futex>) =
        (one.bell_waiting_by(0).unwrap(), one.bell_waiting_by(0).unwrap());
    assert_eq!(seated.wait_timeout(Duration::from_millis(1)), Ok(None), "takes the slot");
    drop(one);
    // A rendezvous in between: its end is heard after that of the first would have been.
    let mut deaths = segment.bell_waiting_by::<Futex>(1).unwrap();
    let (third, three) = trusted();
    drop(three);
    assert_eq!(deaths.wait_timeout(FOREVER), Err(WaitError::PeerGone(third.peer().id())), "and nobody else");
    let mut host: Bell<Eventfd> = segment.bell_waiting_by(0).unwrap();
    assert_eq!(host.wait_timeout(Duration::from_millis(1)), Ok(None));
    let slots = &segment.state(0).unwrap().record().slot_holders;
    let holders = || [0, 1].map(|slot| slots[slot].load(Ordering::Relaxed));
    let [one, other] = holders();
    assert!(one != 0 && other != 0 && one != other, "a slot each");
    let waiting = thread::spawn(move || (seated.wait_timeout(FOREVER), seated));
    let ringer = segment.bell_waiting_by::<Futex>(0).unwrap();
    ringer.ring();
    assert_eq!(host.wait_timeout(FOREVER).unwrap().map(u32::from), Some(1));
    let (heard, seated) = waiting.join().unwrap();
    assert_eq!(heard.unwrap().map(u32::from), Some(1));
    drop(seated);
    assert_eq!(deaths.wait_timeout(FOREVER), Err(WaitError::PeerGone(first.peer().id())));
    assert_eq!(holders(), [0, other]);
    // Nothing is left that kept the connection: there is no waiter
    // slot any more, and what needs none goes on.
    assert_eq!(seatless.wait_timeout(FOREVER).unwrap().map(u32::from), Some(1));
    assert_eq!(late.try_wait().map(u32::from), Some(1));
    assert_eq!(late.wait_timeout(Duration::from_millis(1)), Err(WaitError::HungUp));
    assert_eq!(late.into_fd().map(drop), Err(WaitError::HungUp));
    assert_eq!(holders(), [0, other]);
}

/// It is the parent's number under which the child would take an end,
/// and with the parent it would be given away.
#[test]
fn a_forked_child_takes_no_end_on_a_segment_that_its_parent_joined() {
    let segment = segment(1, 1, 256);
    let (_host, joined) = meet(&segment);
    assert!(in_a_child(fork, || {
        Sender::<Untrusted, Futex>::attach_waiting_by(&joined, 0).map(drop) == Err(AttachError::HungUp)
    }));
}

/// Whichever the watcher heard first was told: half of the time an orderly end looked like a death.
#[test]
fn one_that_leaves_in_order_and_hangs_up_at_once_has_left() {
    let segment = segment(2, 2, 256);
    for _ in 0..50 {
        let (host, joined) = meet(&segment);
        let gone = Sender::<_, Adaptive>::attach(&joined, 0).unwrap();
        let deaf: Receiver = Receiver::attach(&joined, 1).unwrap();
        let mut receiver: Receiver = Receiver::attach(&host, 0).unwrap();
        let mut sender: Sender = Sender::attach(&host, 1).unwrap();
        drop(joined);
        drop((gone, deaf));
        assert_eq!(receiver.recv_timeout(FOREVER).unwrap_err(), RecvError::Closed);
        assert_eq!(sender.try_send(b"").unwrap_err(), SendError::Closed);
        wait_for_earlier_hang_ups(&segment);
        assert_eq!(receiver.try_recv().unwrap_err(), RecvError::Closed, "and it stays so");
        assert_eq!(sender.try_send(b"").unwrap_err(), SendError::Closed);
    }
}

#[test]
fn a_subscriber_that_leaves_in_order_and_hangs_up_at_once_has_left() {
    let segment = segment(1, 1, 64);
    let mut publisher: Publisher = Publisher::new(4096).unwrap();
    let (host, joined) = meet(&segment);
    let number = publisher.admit(&host, 0, WhenSlow::HoldBack).unwrap();
    let subscriber: Subscriber = Subscriber::join(&joined, 0).unwrap();
    drop((host, joined));
    wait_for_earlier_hang_ups(&segment);
    publisher.publish(b"it still listens").unwrap();
    assert_eq!(publisher.ended(), []);
    drop(subscriber);
    wait_for_earlier_hang_ups(&segment);
    publisher.publish(b"to nobody").unwrap();
    assert_eq!(publisher.ended(), [(number, Ended::Left)]);
}

/// Two that joined the same segment know nothing of each other but what the words say.
#[test]
fn of_two_joiners_the_one_that_is_left_is_told_whether_the_other_died_or_left() {
    let segment = segment(1, 1, 4096);
    let (_host, mine) = meet(&segment);
    let mut receiver: Receiver = Receiver::attach(&mine, 0).unwrap();
    let (_connection, mut other) = start("send-on 0", &segment);
    assert_eq!(receiver.recv_timeout(FOREVER).unwrap().expect("hung").to_vec(), 0_u64.to_ne_bytes());
    other.kill();
    assert_eq!(receiver.recv_timeout(FOREVER).unwrap_err(), RecvError::PeerGone(PeerId::UNMET));
    let (_host, third) = meet(&segment);
    drop(Sender::<_, Adaptive>::attach(&third, 0).unwrap());
    assert_eq!(receiver.recv_timeout(FOREVER).unwrap_err(), RecvError::Closed);
}

/// It was counted for ever: with it gone, a wait that nobody could end was not ended.
#[test]
fn a_peer_that_was_hung_up_on_does_not_count_among_the_living() {
    let segment = segment(1, 1, 64);
    let ((first, one), (second, two)) = (meet(&segment), meet(&segment));
    let mut bell = segment.bell_waiting_by::<Futex>(0).unwrap();
    let gone = first.peer().id();
    drop(one);
    assert_eq!(bell.wait_timeout(FOREVER), Err(WaitError::PeerGone(gone)));
    drop(second);
    assert_eq!(bell.wait_timeout(FOREVER), Err(WaitError::PeerGone(gone)), "nobody is left");
    drop(two);
}

/// Two processes that share one segment and host on it handed out the same numbers; with one of two
/// joiners of the same number went the ends of both.
#[test]
fn joiners_met_by_a_process_and_by_its_forked_child_have_numbers_of_their_own() {
    let segment = segment(2, 2, 64);
    let (ours, theirs) = socket::pair().unwrap();
    let joining = thread::spawn(move || socket::join_over(theirs).unwrap());
    let meeting = child(fork, || {
        let connection: Result<Connection, _> = socket::host_over(ours, &segment);
        let mut bell = segment.bell_waiting_by::<Futex>(0).unwrap();
        // Until the parent's joiner has hung up.
        connection.is_ok() && matches!(bell.wait_timeout(FOREVER), Err(WaitError::PeerGone(_)))
    });
    let of_child = joining.join().unwrap();
    let (_host, of_parent) = meet(&segment);
    let _one = Sender::<_, Futex>::attach_waiting_by(&of_child, 0).unwrap();
    let two = Sender::<_, Futex>::attach_waiting_by(&of_parent, 1).unwrap();
    drop((two, of_parent));
    wait_for_earlier_hang_ups(&segment);
    let (_host, third) = meet(&segment);
    assert!(taken(Sender::<_, Adaptive>::attach(&third, 0)), "the one that lives keeps its end");
    drop((_one, of_child));
    assert!(came_to_true(meeting));
}

#[test]
fn lanes_that_cannot_be_and_offers_without_room_for_them_are_named() {
    let none = doorbell::channel::many(0, 64).unwrap_err();
    assert_eq!(none, RendezvousError::CannotLayOut { lanes: 0, capacity: 64 });
    let lanes = Lanes::new(1, 1, 64).unwrap();
    let (bells, payload) = (lanes.bells(), lanes.payload_size());
    let small = Offer { payload: payload - 1, ..Offer::of_lanes(lanes) };
    assert_eq!(Segment::new(&small).unwrap_err(), RendezvousError::NoRoomForLanes { bells, payload });
}

/// What the watcher had not come to yet was never done: the lane stayed taken for ever.
#[test]
fn the_end_of_a_peer_that_died_just_before_its_connection_was_dropped_is_free() {
    for _ in 0..10 {
        let segment = segment(1, 1, 64);
        let (connection, mut other) = start("send-on 0", &segment);
        let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
        assert!(receiver.recv_timeout(FOREVER).unwrap().is_some(), "hung");
        drop(receiver);
        other.kill();
        drop(connection);
        let (_host, next) = meet(&segment);
        assert!(!taken(Sender::<_, Adaptive>::attach(&next, 0)));
    }
}

/// The cursors were swapped, and an honest publisher accused.
#[test]
fn a_subscriber_that_joins_another_lane_than_was_admitted_is_told_so() {
    let segment = segment(2, 2, 64);
    let mut publisher: Publisher = Publisher::new(4096).unwrap();
    let (host, joined) = meet(&segment);
    publisher.admit(&host, 1, WhenSlow::Gap).unwrap();
    let refused =
        Subscriber::<_, Futex>::join_within(&joined, 0, doorbell::rendezvous::MOST_MEMORY).unwrap_err();
    assert_eq!(refused, JoinError::OtherLane { asked: 0, admitted: 1 });
}

/// A forked child has a copy of the socket, and as long as it was open nobody was told.
#[test]
fn hanging_up_is_told_though_a_forked_child_has_a_copy_of_the_connection() {
    let segment = segment(1, 1, 64);
    let (host, joined) = meet(&segment);
    let child = child(fork, || {
        loop {
            thread::park();
        }
    });
    drop(joined);
    let told = segment.bell_waiting_by::<Futex>(0).unwrap().wait_timeout(FOREVER);
    // SAFETY: a child of ours, which is not reaped yet.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: a child of ours; its status is not asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!(told, Err(WaitError::PeerGone(host.peer().id())));
}

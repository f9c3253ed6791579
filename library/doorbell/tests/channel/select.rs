// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for unlike ends.

use crate::meet::meet;
use crate::other::{FOREVER, segment};
use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Receiver, RecvError, SendError, Sender, many, pair};
use doorbell::peer::Trusted;
use doorbell::select::{File, Selectable};
use doorbell::{Bell, Deadline, Select};
use rustix::pipe::pipe;
use std::thread;
use std::time::Duration;

/// Both ways in which one sleeps.
fn each_way(test: impl Fn(Select)) {
    // Where the kernel has no futex_waitv, both are the same.
    test(Select::new());
    test(Select::by_files());
}

/// Waits for `end`, and one at which nothing happens, while `action` is done.
fn is_ended_by(select: &mut Select, end: &mut dyn Selectable, action: impl FnOnce() + Send) {
    let mut silent = Bell::new().unwrap();
    let ends: &mut [&mut dyn Selectable] = &mut [&mut silent, end];
    assert_eq!(select.wait(ends, Some(Deadline::after(Duration::ZERO))), Ok(None), "nothing yet");
    thread::scope(|scope| {
        scope.spawn(|| {
            // Mostly asleep by then; right in any case.
            thread::sleep(Duration::from_millis(20));
            action();
        });
        assert_eq!(select.wait(ends, Some(Deadline::after(FOREVER))), Ok(Some(1)));
    });
}

#[test]
fn a_sleep_is_ended_by_whatever_kind_of_end_has_something() {
    each_way(|mut select| {
        let mut bell = Bell::new().unwrap();
        let ringer = bell.clone();
        is_ended_by(&mut select, &mut bell, || ringer.ring());
        let (mut sender, mut receiver) = pair(4096).unwrap();
        is_ended_by(&mut select, &mut receiver, || sender.send(b"message").unwrap());
        let (mut senders, mut gather) = many(3, 4096).unwrap();
        is_ended_by(&mut select, &mut gather, || senders[1].send(b"message").unwrap());
        let mut publisher: Publisher = Publisher::new(4096).unwrap();
        let mut subscriber: Subscriber<Trusted> = publisher.subscribe(WhenSlow::Gap).unwrap();
        is_ended_by(&mut select, &mut subscriber, || publisher.publish(b"message").unwrap());
        while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
        let emptied = || while receiver.try_recv().unwrap().is_some() {};
        is_ended_by(&mut select, &mut sender.room_for(500), emptied);
        let (readable, writable) = pipe().unwrap();
        let written = || assert_eq!(rustix::io::write(&writable, b"x"), Ok(1));
        is_ended_by(&mut select, &mut File::readable(&readable), written);
        let hung_up = || drop(readable);
        is_ended_by(&mut select, &mut File::readable(&writable), hung_up);
    });
}

#[test]
fn each_end_gets_its_turn_however_busy_the_others_are() {
    let mut select = Select::new();
    let mut bells: [Bell; 4] = std::array::from_fn(|_| Bell::new().unwrap());
    bells.iter().for_each(Bell::ring);
    let mut named = || {
        let [a, b, c, d] = &mut bells;
        select.wait(&mut [a, b, c, d], None).unwrap().unwrap()
    };
    assert_eq!([(); 8].map(|()| named()), [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn there_is_an_end_to_the_wait_at_its_deadline_and_without_ends() {
    each_way(|mut select| {
        assert_eq!(select.wait(&mut [], None), Ok(None));
        let (mut bell, (sender, mut receiver)) = (Bell::new().unwrap(), pair(4096).unwrap());
        let soon = Deadline::after(Duration::from_millis(10));
        assert_eq!(select.wait(&mut [&mut bell, &mut receiver], Some(soon)), Ok(None));
        assert!(soon.passed());
        drop(sender);
    });
}

#[test]
fn a_sender_that_leaves_is_news_as_long_as_nobody_has_come() {
    each_way(|mut select| {
        let (mut bell, (sender, mut receiver)) = (Bell::new().unwrap(), pair(4096).unwrap());
        let (senders, mut gather) = many(2, 4096).unwrap();
        is_ended_by(&mut select, &mut receiver, || drop(sender));
        assert_eq!(select.wait(&mut [&mut receiver], None), Ok(Some(0)));
        assert_eq!(receiver.try_recv().map(drop), Err(RecvError::Closed));
        // Of a gather's, when all have left; each that leaves may name it for nothing.
        drop(senders);
        for _ in 0..3 {
            assert_eq!(select.wait(&mut [&mut bell, &mut gather], None), Ok(Some(1)));
            while let Ok(Some(_)) = gather.try_recv() {}
        }
        assert_eq!(gather.try_recv().map(drop).unwrap_err().error, RecvError::Closed);
    });
}

#[test]
fn a_peer_that_goes_ends_the_sleep_at_its_channel() {
    each_way(|mut select| {
        let (connection, theirs) = meet(&segment(1, 1, 4096));
        let sender: Sender = Sender::attach(&theirs, 0).unwrap();
        let theirs = (theirs, sender);
        let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
        while !matches!(receiver.try_recv(), Ok(None)) {}
        is_ended_by(&mut select, &mut receiver, || drop(theirs));
        assert!(receiver.try_recv().is_err());
    });
}

#[test]
fn nothing_is_lost_between_ends_that_are_waited_for_together() {
    const MESSAGES: u64 = 20_000;
    each_way(|mut select| {
        // Small rings: the senders wait for room, which a receiver that waits must have told them of.
        let (mut first, mut one) = pair(256).unwrap();
        let (mut second, mut other) = pair(256).unwrap();
        let (senders, mut gather) = many(2, 256).unwrap();
        let (pause, mut stop) = (Duration::from_micros(50), Bell::new().unwrap());
        let ringer = stop.clone();
        thread::scope(|scope| {
            let send = move |sender: &mut Sender<Trusted>, rarely: u64| {
                for number in 0..MESSAGES {
                    sender.send(&number.to_ne_bytes()).unwrap();
                    if number % rarely == 0 {
                        thread::sleep(pause);
                    }
                }
            };
            scope.spawn(move || {
                send(&mut first, 100);
                drop(first);
                ringer.ring();
            });
            scope.spawn(move || send(&mut second, 7919));
            for mut sender in senders {
                scope.spawn(move || send(&mut sender, 997));
            }
            let number = |message: &[u8]| u64::from_ne_bytes(message.try_into().unwrap());
            let (mut next, mut of_gather, mut stopped) = ([0; 2], [0; 2], false);
            let patience = || Some(Deadline::after(FOREVER));
            while next != [MESSAGES; 2] || of_gather != [MESSAGES; 2] || !stopped {
                let all: &mut [&mut dyn Selectable] = &mut [&mut one, &mut other, &mut gather, &mut stop];
                match select.wait(all, patience()).unwrap().expect("something is still to come") {
                    0 => {
                        while let Ok(Some(message)) = one.try_recv() {
                            assert_eq!(number(&message), next[0]);
                            next[0] += 1;
                        }
                    }
                    1 => {
                        // One at a time: the sender is told of the room by the wait.
                        if let Ok(Some(message)) = other.try_recv() {
                            assert_eq!(number(&message), next[1]);
                            next[1] += 1;
                        }
                    }
                    2 => {
                        if let Ok(Some((lane, message))) = gather.try_recv() {
                            assert_eq!(number(&message), of_gather[lane]);
                            of_gather[lane] += 1;
                        }
                    }
                    _ => stopped |= stop.try_wait().is_some(),
                }
            }
        });
    });
}

#[test]
fn values_permits_and_moments_are_waited_for_beside_messages() {
    use doorbell::select::Timer;
    let work = doorbell::queue::<u32>(1);
    let (mut popper, notify) = (work.popper().unwrap(), doorbell::Notify::new());
    let (mut sender, mut receiver) = doorbell::channel(4096).unwrap();
    for mut select in [Select::new(), Select::by_files()] {
        thread::scope(|scope| {
            let mut permit = notify.waiter().unwrap();
            let mut room = work.pusher().unwrap();
            let mut wait = |ends: &mut [&mut dyn doorbell::select::Selectable]| {
                select.wait(ends, Some(Deadline::after(FOREVER))).unwrap().expect("hung")
            };
            for _ in 0..100 {
                scope.spawn(|| work.push(7).unwrap());
                assert_eq!(wait(&mut [&mut receiver, &mut popper, &mut permit]), 1);
                scope.spawn(|| work.try_pop().unwrap());
                assert_eq!(wait(&mut [&mut receiver, &mut room, &mut permit]), 1);
                scope.spawn(|| notify.notify_one());
                assert_eq!(wait(&mut [&mut receiver, &mut permit]), 1);
                assert!(permit.try_wait());
            }
            sender.send(b"message").unwrap();
            assert_eq!(wait(&mut [&mut receiver, &mut permit]), 0);
            assert!(receiver.try_recv().unwrap().is_some());
            // A moment ends the sleep of all others, and of none.
            let mut soon = Timer::after(Duration::from_millis(1));
            assert_eq!(wait(&mut [&mut receiver, &mut soon]), 1);
            assert_eq!(wait(&mut [&mut soon]), 0, "until it is asked");
            assert_eq!((soon.try_wait(), soon.try_wait()), (1, 0));
            let mut tick = Timer::every(Duration::from_millis(1));
            for _ in 0..3 {
                assert_eq!(wait(&mut [&mut tick]), 0);
                assert!(tick.try_wait() >= 1);
            }
        });
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other process: how it is started, and what it does.

pub(crate) use crate::common::{FOREVER, Other};
use crate::common::{ROLE, me_as};
use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Lanes, Receiver, Sender};
use doorbell::rendezvous::{Connection, Offer, Segment, inherited};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

impl Other {
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    #[cfg(feature = "fault_injection")]
    pub(crate) fn wait(mut self) -> std::process::ExitStatus {
        self.0.wait().unwrap()
    }
}

/// Held by who forks this process or starts another, until that one has its end of the rendezvous
/// alone: any other that got a copy would hide its death.
static MEETING: Mutex<()> = Mutex::new(());

/// Forks. 0 in the child.
pub(crate) fn fork() -> libc::pid_t {
    let _alone = MEETING.lock().unwrap_or_else(PoisonError::into_inner);
    crate::child::by_fork()
}

/// Starts the other process, which plays `role`, and meets it.
pub(crate) fn start(role: &str, segment: &Arc<Segment>) -> (Connection, Other) {
    let mut command = me_as(role);
    // A death by fault is a panic, whose trace takes longer than all the rest.
    command.env("RUST_BACKTRACE", "0").stderr(Stdio::null());
    let _alone = MEETING.lock().unwrap_or_else(PoisonError::into_inner);
    let offer = inherited::offer(&mut command).unwrap();
    let child = Other(command.spawn().unwrap());
    let connection = offer.meet(segment, child.0.id()).unwrap();
    (connection, child)
}

pub(crate) fn segment(lanes: u32, receivers: u32, capacity: u64) -> Arc<Segment> {
    let lanes = Lanes::new(lanes, receivers, capacity).unwrap();
    Arc::new(Segment::new(&Offer::of_lanes(lanes)).unwrap())
}

/// A message whose content says its number and whose length depends on it.
pub(crate) fn message(number: u64, longest: u64) -> Vec<u8> {
    let mut bytes = number.to_ne_bytes().to_vec();
    let rest = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (longest - 7);
    bytes.extend((0..rest).map(|step| (number + step) as u8));
    bytes
}

/// The message's number, if its content is what `message` makes.
pub(crate) fn number(bytes: &[u8], longest: u64) -> u64 {
    let number = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, message(number, longest), "message {number} was changed on its way");
    number
}

/// What the role in the environment says. Not a child: nothing.
pub(crate) fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (verb, argument) = role.split_once(' ').unwrap_or((&role, "0"));
    let argument: u64 = argument.parse().unwrap();
    let connection: Connection = inherited::join().unwrap();
    match verb {
        "echo" => echo(&connection),
        "send" => send(&connection, argument..u64::MAX, false),
        "send-up-to" => {
            // The receiver before ours has left, and the next may come only when the ring is full.
            send(&connection, 0..argument, true);
            std::process::abort();
        }
        "send-on" => {
            let mut sender: Sender = Sender::attach(&connection, argument as u32).unwrap();
            sender.send(&argument.to_ne_bytes()).unwrap();
            // The parent decides when this ends.
            loop {
                std::thread::park();
            }
        }
        "subscribe" => {
            let mut subscriber: Subscriber = Subscriber::join(&connection, 0).unwrap();
            let mut bytes = Vec::new();
            for _ in 0..argument {
                if subscriber.recv_into(&mut bytes).is_err() {
                    return;
                }
            }
            loop {
                std::thread::park();
            }
        }
        "publish" => {
            let mut publisher: Publisher = Publisher::new(256).unwrap();
            publisher.admit(&connection, 0, WhenSlow::HoldBack).unwrap();
            for number in 0..argument {
                publisher.publish(&number.to_ne_bytes()).unwrap();
            }
            // The parent decides when this ends.
            loop {
                std::thread::park();
            }
        }
        "receive" => {
            let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
            for expected in 0..argument {
                assert_eq!(
                    number(&receiver.recv().unwrap().to_vec(), receiver_longest(&connection)),
                    expected
                );
            }
            std::process::abort();
        }
        #[cfg(feature = "fault_injection")]
        verb if verb.starts_with("die-") => crate::every_write::play(&connection, verb, argument),
        verb => panic!("no role {verb}"),
    }
}

fn receiver_longest(connection: &Connection) -> u64 {
    connection.segment().lanes().unwrap().longest()
}

fn echo(connection: &Connection) {
    let mut requests: Receiver = Receiver::attach(connection, 0).unwrap();
    let mut answers: Sender = Sender::attach(connection, 1).unwrap();
    let mut bytes = Vec::new();
    while requests.recv_into(&mut bytes).is_ok() {
        answers.send(&bytes).unwrap();
    }
}

/// Sends until the receiver is gone, or, if `patient`, until all is sent.
fn send(connection: &Connection, numbers: std::ops::Range<u64>, patient: bool) {
    let mut sender: Sender = Sender::attach(connection, 0).unwrap();
    let longest = sender.longest();
    for number in numbers {
        while sender.send(&message(number, longest)).is_err() {
            if !patient {
                return;
            }
            std::thread::yield_now();
        }
    }
    // No farewell: whoever comes here is about to die.
    std::mem::forget(sender);
}

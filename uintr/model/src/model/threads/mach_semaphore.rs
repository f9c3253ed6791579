// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mach semaphores as notification: a sender that posts to its
//! receivers and goes on when all have taken the post.
//!
//! As Apple documents them they obey Mesa semantics: a signal adds one to the count
//! and makes a sleeper runnable, which then has to find the count above zero like
//! anybody else. `semaphore_signal_all` is for those who sleep at that moment, and
//! adds nothing where nobody does (mach/semaphore.h; Kernel Programming Guide,
//! Synchronization Primitives). Nothing here was held against macOS.

use super::{Op, Thread, Threads, Writer};
use crate::model::{Property, hazard::hazards, search::property};

/// The first receiver's semaphore, the second's after it.
const POSTS: usize = 0;
/// By which the first receiver says that it has taken a post, the second's after it.
const TAKEN: usize = 2;

const LOST: Property = property("taken", "a post was made for every receiver, and one sleeps for ever");

/// One sender, two receivers, so many rounds: a receiver takes the other's post only where it
/// waits once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    name: &'static str,
    rounds: u8,
}

impl Config {
    const ONCE: Self = Self { name: "two receivers, one round", rounds: 1 };
    const TWICE: Self = Self { name: "two receivers, two rounds", rounds: 2 };
    const THRICE: Self = Self { name: "two receivers, three rounds", rounds: 3 };
}

super::configured!(TWICE, THRICE);

hazards! {
    "The mistakes.";

    M1(ONCE): "semaphore_signal_all before all wait",
        "it wakes those who sleep at that moment and leaves the count as it is: who comes a moment \
         later sleeps",
        "signal once for each receiver: a count is kept until it is taken";
    M2(TWICE): "one semaphore for all receivers, signalled once for each",
        "who was woken does not run at once; who has taken its post and waits again takes the \
         other's, and the other sleeps on",
        "a semaphore for each receiver";
}

fn model(Config { rounds, .. }: Config, hazard: Option<Hazard>) -> Threads {
    let receivers = ["receiver A", "receiver B"];
    let mut threads: Vec<Thread> =
        receivers.iter().enumerate().map(|(number, name)| receiver(name, number, rounds, hazard)).collect();
    threads.push(sender(rounds, hazard));
    Threads { threads, words: &["semaphore A", "semaphore B", "taken by A", "taken by B"], lost: LOST }
}

/// Which semaphore is a receiver's.
fn of(number: usize, hazard: Option<Hazard>) -> usize {
    POSTS + if hazard == Some(Hazard::M2) { 0 } else { number }
}

fn sender(rounds: u8, hazard: Option<Hazard>) -> Thread {
    let all = hazard == Some(Hazard::M1);
    let mut w = Writer::default();
    for _ in 0..rounds {
        for number in [0, 1] {
            w.op("signals", Op::SemaphoreSignal { at: of(number, hazard), all });
        }
        for number in [0, 1] {
            w.op("waits until it is taken", Op::SemaphoreWait { at: TAKEN + number });
        }
    }
    w.done("sender")
}

fn receiver(name: &'static str, number: usize, rounds: u8, hazard: Option<Hazard>) -> Thread {
    let mut w = Writer::default();
    for _ in 0..rounds {
        w.op("waits", Op::SemaphoreWait { at: of(number, hazard) })
            .op("has taken it", Op::SemaphoreSignal { at: TAKEN + number, all: false });
    }
    w.done(name)
}

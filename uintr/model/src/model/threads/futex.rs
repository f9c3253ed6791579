// SPDX-License-Identifier: MIT OR Apache-2.0
//! A futex used as an event: a word that changes with every message,
//! compared by the kernel before it lets a waiter sleep.

use super::{Op, Thread, Threads, Value, Writer};
use crate::model::{Property, hazard::hazards, search::property};

const MESSAGES: usize = 0;
const WORD: usize = 1;

const R_MESSAGES: usize = 0;
const R_WORD: usize = 1;
const R_SEEN: usize = 2;

const LOST: Property = property("woken", "a message is there, and a waiter sleeps for ever");

/// One notifier that sends `messages`, and `waiters` that must each see them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    name: &'static str,
    waiters: u8,
    messages: u8,
}

impl Config {
    const ONE: Self = Self { name: "one waiter, one message", waiters: 1, messages: 1 };
    const BOTH: Self = Self { name: "two waiters, one message", waiters: 2, messages: 1 };
    const ONE_TWICE: Self = Self { name: "one waiter, two messages", messages: 2, ..Self::ONE };
    const BOTH_TWICE: Self = Self { name: "two waiters, two messages", messages: 2, ..Self::BOTH };
}

super::configured!(ONE_TWICE, BOTH_TWICE);

hazards! {
    "The mistakes.";

    F1(ONE): "check, then wait, without a compare",
        "the message and its wake-up come between the check and the sleep; nothing tells the \
         kernel that the check is out of date",
        "pass the value that was checked: the kernel compares it under the lock that wakers take";
    F2(ONE): "wake before publish",
        "the waiter is woken, finds nothing and sleeps again; then the message comes in silence",
        "publish, change the word, wake";
    F3(ONE): "wake without changing the word",
        "the message is elsewhere and the futex word stays as it was, so the compare always succeeds",
        "change the word with every message, before the wake-up";
    F4(ONE): "expected value read after the check",
        "a message between the check and the read makes the expected value new, and the compare succeeds",
        "read the word first, then check, then wait for that value";
    F5(BOTH): "one waiter woken for a message that all must see",
        "the other stays asleep",
        "wake all, or hand the wake-up on";
}

fn model(Config { waiters, messages, .. }: Config, hazard: Option<Hazard>) -> Threads {
    let names = ["waiter A", "waiter B"];
    let mut threads: Vec<Thread> =
        names.iter().take(waiters.into()).map(|name| waiter(name, messages, hazard)).collect();
    threads.push(notifier(messages, hazard));
    Threads { threads, words: &["messages", "futex word"], lost: LOST }
}

fn notifier(messages: u8, hazard: Option<Hazard>) -> Thread {
    let has = |h| hazard == Some(h);
    let publish = Op::Add { to: MESSAGES, by: 1 };
    let wake = Op::FutexWake { at: WORD, all: !has(Hazard::F5) };
    let mut w = Writer::default();
    for _ in 0..messages {
        w.op_if(!has(Hazard::F2), "publishes", publish)
            .op_if(!has(Hazard::F3), "changes the word", Op::Add { to: WORD, by: 1 })
            .op("futex wake", wake)
            .op_if(has(Hazard::F2), "publishes, too late", publish);
    }
    w.done("notifier")
}

fn waiter(name: &'static str, messages: u8, hazard: Option<Hazard>) -> Thread {
    let has = |h| hazard == Some(h);
    let read = Op::Load { from: WORD, to: R_WORD };
    let expected = (!has(Hazard::F1)).then_some(Value::Register(R_WORD));
    Writer::default()
        .label("again")
        .op_if(!has(Hazard::F4) && !has(Hazard::F1), "reads the word", read)
        .op("looks for messages", Op::Load { from: MESSAGES, to: R_MESSAGES })
        .if_equal(R_MESSAGES, Value::Register(R_SEEN), "wait")
        .copy(R_MESSAGES, R_SEEN)
        .if_equal(R_SEEN, Value::Is(messages), "done")
        .jump("again")
        .label("wait")
        .op_if(has(Hazard::F4), "reads the word, too late", read)
        .op("futex wait", Op::FutexWait { at: WORD, expected })
        .jump("again")
        .done(name)
}

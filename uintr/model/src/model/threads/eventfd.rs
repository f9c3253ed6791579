// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue with an eventfd beside it: the consumer waits with epoll, and arms a flag so that a
//! producer writes the eventfd only when somebody is going to sleep.

use super::{Op, Thread, Threads, Value, Writer};
use crate::model::{Property, hazard::hazards, search::property};

const QUEUE: usize = 0;
const ARMED: usize = 1;
/// The word after it holds the edge that edge-triggered epoll reports.
const EVENTFD: usize = 2;

const R_QUEUE: usize = 0;
const R_ARMED: usize = 1;
const R_SEEN: usize = 2;

const LOST: Property = property("woken", "a message is in the queue, and its consumer waits for ever");

/// A producer of messages and a consumer, or two sides that answer each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    name: &'static str,
    both_ways: bool,
}

impl Config {
    const ONE_WAY: Self = Self { name: "producer and consumer", both_ways: false };
    const BOTH_WAYS: Self = Self { name: "both ways", both_ways: true };
}

super::configured!(ONE_WAY, BOTH_WAYS);

hazards! {
    "The mistakes.";

    E1(ONE_WAY): "re-armed before the token is consumed",
        "the consumer arms, looks, and then reads the eventfd: it eats the token of a message that \
         came after the look",
        "consume the token, re-arm, look again, and only then wait";
    E2(ONE_WAY): "edge-triggered with a partial drain",
        "two messages make one edge; the consumer takes one message and waits for an edge that does not come",
        "drain until empty after each edge, or use level-triggered epoll";
    E3(BOTH_WAYS): "one counter for both directions",
        "a side reads the token it has just written for the other, and both wait",
        "one eventfd for each direction";
    E4(ONE_WAY): "no look after arming",
        "a message between the last look and the arming finds nobody to notify",
        "look again after arming";
    E5(ONE_WAY): "level-triggered and never read",
        "the eventfd stays readable: every wait returns at once, and the consumer keeps its \
         processor busy with an empty queue",
        "read the eventfd before the queue";
    E6(ONE_WAY): "no fence between message and flag",
        "the producer's look at the flag passes its message: it sees nobody armed, and the \
         consumer sees no message",
        "a full fence on both sides";
}

fn model(Config { both_ways, .. }: Config, hazard: Option<Hazard>) -> Threads {
    if both_ways {
        let shared = hazard == Some(Hazard::E3);
        let back = if shared { EVENTFD } else { EVENTFD + 2 };
        let first = Writer::default()
            .op("writes the request", Op::TokenWrite { at: EVENTFD })
            .op("reads the answer", Op::TokenRead { at: back })
            .done("client");
        let second = Writer::default()
            .op("reads the request", Op::TokenRead { at: EVENTFD })
            .op("writes the answer", Op::TokenWrite { at: back })
            .done("server");
        let lost = property(
            "woken",
            "the client has taken its own request for the answer, and the server waits for ever",
        );
        return Threads {
            threads: vec![first, second],
            words: &["", "", "eventfd", "", "eventfd back"],
            lost,
        };
    }
    Threads {
        threads: vec![producer(hazard), consumer(hazard)],
        words: &["queue", "armed", "eventfd"],
        lost: LOST,
    }
}

/// Two where the mistake needs them or none is made; otherwise one, which makes the shortest chart.
const fn messages(hazard: Option<Hazard>) -> u8 {
    match hazard {
        None | Some(Hazard::E2 | Hazard::E5) => 2,
        Some(_) => 1,
    }
}

fn producer(hazard: Option<Hazard>) -> Thread {
    let messages = messages(hazard);
    let has = |h| hazard == Some(h);
    let always = has(Hazard::E2) || has(Hazard::E5);
    let mut w = Writer::default();
    for message in 0..messages {
        let next = ["next", "done"][usize::from(message + 1 == messages)];
        w.op("puts a message", Op::Add { to: QUEUE, by: 1 });
        if !always {
            w.op_if(!has(Hazard::E6), "fence", Op::Fence)
                .op("looks whether armed", Op::Load { from: ARMED, to: R_ARMED })
                .if_equal(R_ARMED, Value::Is(0), next)
                .op("disarms", Op::Swap { at: ARMED, value: 0, to: R_ARMED })
                .if_equal(R_ARMED, Value::Is(0), next);
        }
        w.op("writes the eventfd", Op::TokenWrite { at: EVENTFD });
        if next == "next" {
            w.label(next);
        }
    }
    w.done("producer")
}

/// `queue` counts what was ever put in, and the consumer remembers how much of it it has taken.
fn consumer(hazard: Option<Hazard>) -> Thread {
    let messages = messages(hazard);
    let has = |h| hazard == Some(h);
    let mut w = Writer::default();
    let look = Op::Load { from: QUEUE, to: R_QUEUE };
    let take = Op::TokenTake { at: EVENTFD };
    match hazard {
        Some(Hazard::E2) => {
            // Takes exactly one message for each event.
            w.op("epoll, edge-triggered", Op::EdgeWait { at: EVENTFD })
                .op("takes the first message", look)
                .op("epoll, edge-triggered", Op::EdgeWait { at: EVENTFD })
                .op("takes the second message", look);
        }
        Some(Hazard::E5) => {
            w.label("again")
                .op("epoll, level-triggered", Op::LevelWait { at: EVENTFD })
                .op("looks into the queue", look)
                .if_equal(R_QUEUE, Value::Is(messages + 1), "done")
                .jump("again");
        }
        _ => {
            w.label("again")
                .op_if(!has(Hazard::E1), "reads the eventfd", take)
                .op("arms", Op::Or { to: ARMED, bits: 1 })
                .op("fence", Op::Fence);
            if !has(Hazard::E4) {
                w.op("looks into the queue", look)
                    .if_equal(R_QUEUE, Value::Register(R_SEEN), "wait")
                    .copy(R_QUEUE, R_SEEN)
                    .if_equal(R_SEEN, Value::Is(messages), "done")
                    .jump("again")
                    .label("wait");
            }
            w.op_if(has(Hazard::E1), "reads the eventfd, too late", take)
                .op("epoll, level-triggered", Op::LevelWait { at: EVENTFD });
            if has(Hazard::E4) {
                w.op("looks into the queue", look).if_equal(R_QUEUE, Value::Is(messages), "done");
            }
            w.jump("again");
        }
    }
    w.done("consumer")
}

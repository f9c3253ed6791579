// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wake protocol of the library (`library/core/src/wake.rs`), step by step: N1 to N6 and W1 to
//! W6 are the names used there, and each hazard is one of the switches of its `Steps`
//! (B8 apart, which is the caller's own mistake).
//!
//! There the Rust code itself is explored with loom; here the
//! protocol is, with a chart for each mistake.

use super::{Op, Thread, Threads, Value, Writer};
use crate::model::{Property, hazard::hazards, search::property};

const RUNG: usize = 0;
const WAITERS: usize = 1;
const EPOCH: usize = 2;
const TOKEN: usize = 3;

const FUTEX_BIT: u8 = 1;
const TOKEN_BIT: u8 = 2;

const R_RUNG: usize = 0;
const R_OTHER: usize = 1;
const R_SEEN: usize = 2;

const LOST: Property = property("woken", "the bell was rung, and the waiter sleeps for ever");

/// Where the waiter sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seat {
    /// On the epoch word.
    Futex,
    /// On an eventfd of its own.
    Token,
}

/// Two notifiers that ring once each, or one that rings twice, and one waiter that wants to see
/// every ring. One ring is enough for most mistakes, and makes the shortest chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    name: &'static str,
    seat: Seat,
    notifiers: u8,
    rings: u8,
}

impl Config {
    const FUTEX: Self = Self { name: "futex, one ring", seat: Seat::Futex, notifiers: 1, rings: 1 };
    const TOKEN: Self = Self { name: "eventfd, one ring", seat: Seat::Token, ..Self::FUTEX };
    const FUTEX_TWICE: Self = Self { name: "futex, one notifier", rings: 2, ..Self::FUTEX };
    const FUTEX_BY_TWO: Self = Self { name: "futex, two notifiers", notifiers: 2, ..Self::FUTEX };
    const TOKEN_TWICE: Self = Self { name: "eventfd, one notifier", rings: 2, ..Self::TOKEN };
    const TOKEN_BY_TWO: Self = Self { name: "eventfd, two notifiers", notifiers: 2, ..Self::TOKEN };
}

super::configured!(FUTEX_TWICE, FUTEX_BY_TWO, TOKEN_TWICE, TOKEN_BY_TWO);

hazards! {
    "The mistakes, each in one step of the protocol.";

    B1(FUTEX): "no fence in the notifier",
        "the look at the waiters passes the ring: the notifier sees nobody, the waiter sees nothing",
        "N2: a full fence between the ring and the look; pairs with W4";
    B2(FUTEX): "no fence in the waiter",
        "the last look at the bell passes the bit that announces the sleeper",
        "W4: a full fence between the bit and the look; pairs with N2";
    B3(TOKEN_TWICE): "token consumed after arming",
        "a notifier that is late with a ring already seen takes the bit and writes the token; the \
         waiter eats it and sleeps, and the next ring finds no bit",
        "W1 first: consume, re-arm, re-check, and only then sleep";
    B4(FUTEX_TWICE): "ticket read after arming",
        "a notifier that is late with a ring already seen takes the bit and moves the epoch; the \
         ticket is the new one, and the next ring finds no bit",
        "W2 before W3: the ticket is older than anything that can take the bit";
    B5(FUTEX_BY_TWO): "bits taken after the epoch moves",
        "a notifier that has moved the epoch for an earlier ring takes the bit of a waiter whose \
         ticket is already the new one",
        "N4 before N5";
    B6(TOKEN): "sleep without a re-check",
        "a ring between the caller's own look and the bit finds nobody to wake",
        "W5: look again after the bit is set";
    B7(FUTEX): "epoch not moved",
        "the wake-up comes between the re-check and the sleep: nobody is in the queue yet, and the \
         compare finds nothing changed",
        "N5 before N6";
    B8(FUTEX): "rung before published",
        "the waiter is woken, looks, finds nothing, and sleeps again; then the thing becomes true in silence",
        "N1 first";
    B9(TOKEN): "the waiter does not say that it sleeps",
        "no bit is set, so nobody is ever woken",
        "W3: set the bit before the last look";
}

fn model(Config { seat, notifiers, rings, .. }: Config, hazard: Option<Hazard>) -> Threads {
    let mut threads = vec![waiter(seat, notifiers * rings, hazard)];
    let names = ["notifier A", "notifier B"];
    threads.extend((0..usize::from(notifiers)).map(|n| notifier(names[n], rings, hazard)));
    Threads { threads, words: &["bell", "waiters", "epoch", "eventfd"], lost: LOST }
}

fn notifier(name: &'static str, rings: u8, hazard: Option<Hazard>) -> Thread {
    let has = |h| hazard == Some(h);
    let mut w = Writer::default();
    for ring in 0..rings {
        let next = ["next", "done"][usize::from(ring + 1 == rings)];
        let end = if has(Hazard::B8) { ["late", "late again"][usize::from(ring)] } else { next };
        w.op_if(!has(Hazard::B8), "N1 rings", Op::Add { to: RUNG, by: 1 })
            .op_if(!has(Hazard::B1), "N2 fence", Op::Fence)
            .op("N3 looks for waiters", Op::Load { from: WAITERS, to: R_OTHER })
            .if_equal(R_OTHER, Value::Is(0), end)
            .op_if(has(Hazard::B5), "N5 moves the epoch", Op::Add { to: EPOCH, by: 1 })
            .op("N4 takes the bits", Op::Swap { at: WAITERS, value: 0, to: R_OTHER })
            .if_equal(R_OTHER, Value::Is(0), end)
            .op_if(!has(Hazard::B5) && !has(Hazard::B7), "N5 moves the epoch", Op::Add { to: EPOCH, by: 1 });
        let skip = ["no futex sleeper", "again no futex sleeper"][usize::from(ring)];
        w.if_clear(R_OTHER, FUTEX_BIT, skip)
            .op("N6 futex wake", Op::FutexWake { at: EPOCH, all: true })
            .label(skip)
            .if_clear(R_OTHER, TOKEN_BIT, end)
            .op("N6 writes the eventfd", Op::TokenWrite { at: TOKEN });
        if has(Hazard::B8) {
            w.label(end).op("N1 rings, too late", Op::Add { to: RUNG, by: 1 });
        }
        if next == "next" {
            w.label("next");
        }
    }
    w.done(name)
}

fn waiter(seat: Seat, rings: u8, hazard: Option<Hazard>) -> Thread {
    let has = |h| hazard == Some(h);
    let consume = Op::TokenTake { at: TOKEN };
    let ticket = Op::Load { from: EPOCH, to: R_OTHER };
    let token = seat == Seat::Token;
    let bits = if token { TOKEN_BIT } else { FUTEX_BIT };
    let mut w = Writer::default();
    // The caller's own look, then the wait.
    w.label("look")
        .op("looks at the bell", Op::Load { from: RUNG, to: R_RUNG })
        .if_equal(R_RUNG, Value::Register(R_SEEN), "wait")
        .label("seen")
        .copy(R_RUNG, R_SEEN)
        .if_equal(R_SEEN, Value::Is(rings), "done")
        .jump("look")
        .label("wait")
        .op_if(token && !has(Hazard::B3), "W1 consumes the token", consume)
        .op_if(!token && !has(Hazard::B4), "W2 reads its ticket", ticket)
        .op_if(!has(Hazard::B9), "W3 sets its bit", Op::Or { to: WAITERS, bits })
        .op_if(!token && has(Hazard::B4), "W2 reads its ticket, too late", ticket)
        .op_if(!has(Hazard::B2), "W4 fence", Op::Fence)
        .op_if(token && has(Hazard::B3), "W1 consumes the token, too late", consume);
    if !has(Hazard::B6) {
        w.op("W5 looks at the bell again", Op::Load { from: RUNG, to: R_RUNG })
            .if_equal(R_RUNG, Value::Register(R_SEEN), "sleep")
            .jump("seen")
            .label("sleep");
    }
    match seat {
        Seat::Futex => {
            w.op("W6 futex wait", Op::FutexWait { at: EPOCH, expected: Some(Value::Register(R_OTHER)) })
        }
        Seat::Token => w.op("W6 waits for the eventfd", Op::LevelWait { at: TOKEN }),
    };
    w.jump("look");
    w.done("waiter")
}

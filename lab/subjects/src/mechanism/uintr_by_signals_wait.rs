// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `uintr-wait` is on a machine without user interrupts: a futex for each vector.

use super::uintr_wait::UintrWait;
use super::user_interrupt::{BySignals, InterruptLink};
use super::{Explanation, Mechanism};

pub(crate) struct UintrBySignalsWait;

impl Mechanism for UintrBySignalsWait {
    type Link = InterruptLink<UintrWait, BySignals>;
    const NAME: &'static str = "uintr-by-signals-wait";
    const COALESCES: bool = true;
    // As uintr-by-signals.
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "user interrupts by signals, to a receiver that sleeps in uintr_wait_until",
        how: "The calls are those of uintr-wait, made by libuintr of what every Linux has. The \
            waiter says in a word that it shares with its notifiers that it waits, looks at \
            the words of its vectors, and sleeps on all of them. The notifier sets a bit in \
            its own word, sees that the receiver waits, and wakes that word's sleepers. Behind \
            the wait the waiter opens its mask for a moment, in which its handler is called as \
            a function: no signal is sent.",
        kernel: "Wake: FUTEX_WAKE. Wait: futex_waitv, which sleeps only if every word still is \
            what the waiter saw.",
        limits: "A vector is one bit. The timed wait is futex_waitv's own deadline; a signal \
            ends it, and it is entered again. 64 vectors, 256 connections of a process.",
        sources: &[
            "uintr/driver/user/signals.h, signals-wait.c, signals-send.c; uintr(3)",
            "futex_waitv: Documentation/userspace-api/futex2.rst",
        ],
    };
}

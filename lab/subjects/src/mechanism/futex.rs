// SPDX-License-Identifier: MIT OR Apache-2.0
//! The futex: a word in memory, and a kernel queue for those who sleep on its value.

pub(crate) use doorbell_harness::futex::{FutexLink, FutexNotifier};

use super::{Explanation, Mechanism, Notifiers};

pub(crate) struct FutexShared;

pub(crate) struct FutexPrivate;

const HOW: &str = "The notifier stores the next number in a shared word and calls FUTEX_WAKE for \
    one waiter, always: whether somebody sleeps is not asked, so the sender-side cost is that of a \
    real wake-up. The waiter calls FUTEX_WAIT with the number it saw last; the kernel compares \
    under its own lock and sleeps only if the word still holds it, which is what makes the wake-up \
    impossible to lose.";

const SOURCES: &[&str] =
    &["futex(2), futex(7)", "Linux kernel/futex/waitwake.c", "U. Drepper, Futexes Are Tricky (2011)"];

impl Mechanism for FutexShared {
    type Link = FutexLink;
    const NAME: &'static str = "futex";
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "futex on a shared word (process-shared key)",
        how: HOW,
        kernel: "Wake: hash the page and offset, take the bucket's lock, move the sleeper to a \
            run queue, send a rescheduling interrupt if its CPU is idle or runs something less \
            urgent. Wait: hash, lock, compare, queue, schedule.",
        limits: "Two notifications before the waiter looks are one. The key of a shared futex \
            costs a page look-up per call more than a private one. The timed wait is \
            FUTEX_WAIT's own.",
        sources: SOURCES,
    };
}

impl Mechanism for FutexPrivate {
    type Link = FutexLink<true>;
    const NAME: &'static str = "futex-private";
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;
    const PROCESSES: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "futex with FUTEX_PRIVATE_FLAG (threads only)",
        how: HOW,
        kernel: "As the shared futex, but the key is the address space and the address: no page look-up.",
        limits: "Joins threads of one process only. Two notifications before the waiter looks are one. \
                 The timed wait is FUTEX_WAIT's own.",
        sources: SOURCES,
    };
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `uintr` is on a machine without user interrupts: a signal to a thread that runs.

use super::uintr::Uintr;
use super::user_interrupt::{BySignals, InterruptLink};
use super::{Explanation, Mechanism, Waits};

pub(crate) struct UintrBySignals;

impl Mechanism for UintrBySignals {
    type Link = InterruptLink<Uintr, BySignals>;
    const NAME: &'static str = "uintr-by-signals";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;
    // What one pays who writes for user interrupts and has none: no
    // means that anybody would choose else.
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "user interrupts by signals, to a receiver that runs",
        how: "The calls are those of uintr, and libuintr makes them of what every Linux has. \
            The notifier sets a bit in a word that it shares with the receiver and, as the \
            receiver has said that it runs unmasked, sends a byte on a socket, which signals \
            the receiver's thread (SIGURG). The signal's handler takes the bit and calls the \
            receiver's own, which notes the vector, at which the waiter looks without pause.",
        kernel: "Send: send(2) on a socket that has O_ASYNC, whose owner is the thread: a \
            signal is queued and the CPU on which the thread runs is interrupted. Receive: the \
            kernel builds a frame on the stack, runs the handler, which reads the socket \
            empty, and is left by rt_sigreturn.",
        limits: "The waiter keeps its CPU. A vector is one bit: what is sent twice before it \
            is taken is one. SIGURG belongs to it. 64 vectors, 256 connections of a process.",
        sources: &[
            "uintr/driver/user/signals.h, signals-handlers.c, signals-send.c; uintr(3)",
            "fcntl(2), F_SETOWN_EX and F_SETSIG; signal(7)",
        ],
    };
}

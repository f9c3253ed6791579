// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch by futex: a wake there and back.

use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::exchange::{End, exchange};
use super::{Contexts, Explanation, Fault, Form, Operation, PLAIN, Word};

pub(super) const OPERATION: Operation = Operation {
    name: "switch-futex",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "switch by futex: one wake-up there, one back",
        how: "Each side counts up a word, wakes the other on it, and sleeps on the other's \
            word; threads use the private key. A round is there and back.",
        kernel: "FUTEX_WAKE moves the sleeper to a run queue; FUTEX_WAIT compares, queues and \
            schedules away.",
        limits: "A round is two switches and four calls; the figure per switch is the window \
            divided by the switches counted, calls included.",
        sources: &["futex(2)", "Linux kernel/futex/waitwake.c"],
    },
    open: |site, _| {
        let flags = if site.contexts() == Contexts::Threads { Flags::PRIVATE } else { Flags::empty() };
        let words = [site.word()?, site.word()?];
        exchange(move |role| {
            let own = role.index();
            Ok(WordEnd { own_word: words[own], peer_word: words[1 - own], flags, sent: 0, received: 0 })
        })
    },
    ..PLAIN
};

/// One side: the word it counts up, and the one it sleeps on.
struct WordEnd {
    own_word: &'static Word,
    peer_word: &'static Word,
    flags: Flags,
    sent: u32,
    received: u32,
}

impl End for WordEnd {
    #[inline]
    fn give(&mut self) -> Result<(), Fault> {
        self.sent = self.sent.wrapping_add(1);
        // Pairs with the Acquire load in `take`.
        self.own_word.store(self.sent, Release);
        futex::wake(&self.own_word.0, self.flags, 1)
            .map_err(|error| Fault::new("futex(FUTEX_WAKE)", error))?;
        Ok(())
    }

    #[inline]
    fn take(&mut self) -> Result<(), Fault> {
        // In lockstep the peer's word is `received`, or one more.
        while self.peer_word.load(Acquire) == self.received {
            match futex::wait(&self.peer_word.0, self.flags, self.received, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(Fault::new("futex(FUTEX_WAIT)", error)),
            }
        }
        self.received = self.received.wrapping_add(1);
        Ok(())
    }
}

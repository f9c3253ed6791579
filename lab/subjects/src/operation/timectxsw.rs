// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol of tsuna/contextswitch: one futex word with two
//! values, and `sched_yield` wherever a call did not do.

use std::sync::atomic::Ordering::Relaxed;

use rustix::thread::futex::{self, Flags};
use rustix::thread::sched_yield;

use super::exchange::{End, exchange};
use super::figures::assumed;
use super::{Contexts, Explanation, Fault, Form, Operation, PLAIN, Word};

/// What the leader stores before it wakes, and the follower sleeps on.
const LEADERS: u32 = 0xA;
/// What the follower stores before it wakes, and the leader sleeps on.
const FOLLOWERS: u32 = 0xB;

pub(super) const OPERATION: Operation = Operation {
    name: "timectxsw",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "the protocol of timectxsw (threads: timetctxsw; working set: timectxswws)",
        how: "One shared futex word holds A or B. A side stores its value, wakes until \
            somebody was woken, yields, and waits on the other's value until a wait succeeds; \
            every call that did not do is followed by sched_yield and tried again. With \
            --working-set both sides write the same memory each time.",
        kernel: "A mixture of wake-ups, sleeps and yields whose proportion depends on timing.",
        limits: "The tool divides its time by four switches a loop. The kernel made six in one \
            published count, ten in another, two on two cores: both quotients are shown, the \
            tool's and the counted one. The tool subtracts two working-set writes a loop; the \
            row `touch` shows what one costs alone.",
        sources: &["tsuna/contextswitch, timectxsw.c, timetctxsw.c, timectxswws.c; issue 3 there"],
    },
    open: |site, _| {
        let word = site.word()?;
        word.store(LEADERS, Relaxed);
        // In the original too each sleeps on the value that the other stores.
        exchange(move |role| {
            let [own, sleeps_on] =
                if role.index() == 0 { [LEADERS, FOLLOWERS] } else { [FOLLOWERS, LEADERS] };
            Ok(WordEnd { word, own, sleeps_on })
        })
    },
    classic: |record| {
        let name = match record.configuration.contexts {
            Contexts::Processes => "timectxsw as printed",
            Contexts::Threads => "timetctxsw as printed",
        };
        assumed(record, name, 4, "loops")
    },
    ..PLAIN
};

/// One side of the word. The original keys it as shared memory between threads too.
struct WordEnd {
    word: &'static Word,
    own: u32,
    sleeps_on: u32,
}

impl End for WordEnd {
    const SHARED_SET: bool = true;

    #[inline]
    fn announce(&mut self) {
        // The tool's store is a plain one; the futex calls that follow order it.
        self.word.store(self.own, Relaxed);
    }

    #[inline]
    fn give(&mut self) -> Result<(), Fault> {
        loop {
            match futex::wake(&self.word.0, Flags::empty(), 1) {
                Ok(0) => sched_yield(),
                Ok(_) => return Ok(()),
                Err(error) => return Err(Fault::new("futex(FUTEX_WAKE)", error)),
            }
        }
    }

    #[inline]
    fn take(&mut self) -> Result<(), Fault> {
        sched_yield();
        while futex::wait(&self.word.0, Flags::empty(), self.sleeps_on, None).is_err() {
            sched_yield();
        }
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `pmqtest`: a message handed over through a POSIX queue.

use super::handover::{Handover, OneWay};
use super::message_queue::MessageQueue;
use super::{Explanation, Fault, Form, Operation, PLAIN};

/// Bytes of a message; the tool's are of this order, and up to a
/// cache line the size does not matter.
const MESSAGE: usize = 8;

pub(super) const OPERATION: Operation = Operation {
    name: "handover-mq",
    form: Form::two_sides("hand-over", 1),
    explanation: Explanation {
        summary: "the protocol of pmqtest: a message through a POSIX queue, one way",
        how: "The sender stamps and sends; the receiver, asleep in mq_receive, stamps, sleeps \
            200 us and answers through a second queue, on which the sender waits.",
        kernel: "A message for a sleeping receiver is handed to it directly, without being queued.",
        limits: "Run it with --scheduler fifo and on one core as the tool does; its -a pins \
            both sides to one CPU.",
        sources: &["rt-tests, pmqtest.c", "mq_overview(7)"],
    },
    usual: false,
    open: |site, _| {
        let queue = || MessageQueue::make(site, 1, MESSAGE as i64);
        Ok(Box::new(OneWay(Queues { there: queue()?, back: queue()? })))
    },
    ..PLAIN
};

struct Queues {
    there: MessageQueue,
    back: MessageQueue,
}

impl Handover for Queues {
    #[inline]
    fn release(&self) -> Result<(), Fault> {
        self.there.send(&[1; MESSAGE], 1)
    }
    #[inline]
    fn turn(&self) -> Result<(), Fault> {
        self.back.receive(&mut [0; MESSAGE])
    }
    #[inline]
    fn acquire(&self) -> Result<(), Fault> {
        self.there.receive(&mut [0; MESSAGE])
    }
    #[inline]
    fn allow(&self) -> Result<(), Fault> {
        self.back.send(&[2; MESSAGE], 1)
    }
}

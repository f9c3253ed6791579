// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `--switch-method mq`: messages through a queue that holds one.

use std::time::Duration;

use super::figures::assumed;
use super::message_queue::MessageQueue;
use super::stream::{Stream, Turns};
use super::{Explanation, Fault, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "stream-mq",
    form: Form::two_sides("message", 100),
    explanation: Explanation {
        summary: "the protocol of stress-ng --switch-method mq: messages one way through a \
            queue that holds one",
        how: "One side sends messages of 8 bytes into a POSIX queue of one place, the other, \
            which is timed, receives them.",
        kernel: "A send into the full queue sleeps; a receive takes the message and lets the \
            sleeping sender put its own.",
        limits: "stress-ng calls a message one switch; how many the kernel makes of it depends \
            on who runs ahead.",
        sources: &["stress-ng, stress-switch.c"],
    },
    usual: false,
    open: |site, _| Ok(Box::new(Turns(MessageQueue::make(site, 1, 8)?))),
    classic: |record| assumed(record, "stress-ng as printed", 1, "messages"),
    ..PLAIN
};

impl Stream for MessageQueue {
    #[inline]
    fn lead(&self) -> Result<(), Fault> {
        MessageQueue::receive(self, &mut [0; 8])
    }

    #[inline]
    fn follow(&self) -> Result<(), Fault> {
        MessageQueue::send(self, &[1; 8], 0)
    }

    fn free(&self) -> Result<(), Fault> {
        MessageQueue::drain(self, &mut [0; 8], Duration::from_millis(50))
    }
}

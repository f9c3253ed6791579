// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `--switch-method mq`: messages through a queue that holds one.

use std::time::Duration;

use super::figures::{figure, window};
use super::message_queue::MessageQueue;
use super::stream::{Stream, Turns};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Figure, Record};

/// A POSIX message queue of one place.
#[derive(Debug)]
pub(super) struct StreamMq;

impl Operation for StreamMq {
    fn name(&self) -> &'static str {
        "stream-mq"
    }
    fn form(&self) -> Form {
        Form::two_sides("message", 100)
    }
    fn usual(&self) -> bool {
        false
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of stress-ng --switch-method mq: messages one way through a \
                queue that holds one",
            how: "One side sends messages of 8 bytes into a POSIX queue of one place, the other, \
                which is timed, receives them.",
            kernel: "A send into the full queue sleeps; a receive takes the message and lets the \
                sleeping sender put its own.",
            limits: "stress-ng calls a message one switch; how many the kernel makes of it depends \
                on who runs ahead.",
            sources: &["stress-ng, stress-switch.c"],
        }
    }
    fn open(&self, site: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Turns(Queue(MessageQueue::make(site, 1, 8)?))))
    }
    fn classic(&self, record: &Record) -> Option<Figure> {
        let (window, rounds) = window(record)?;
        let formula = format!("{window} ns / ({rounds} messages), assumed");
        Some(figure("stress-ng as printed", window / rounds, "ns", formula))
    }
}

#[derive(Debug)]
struct Queue(MessageQueue);

impl Stream for Queue {
    #[inline]
    fn lead(&self) -> Result<(), Fault> {
        self.0.receive(&mut [0; 8])
    }

    #[inline]
    fn follow(&self) -> Result<(), Fault> {
        self.0.send(&[1; 8], 0)
    }

    fn free(&self) -> Result<(), Fault> {
        self.0.drain(&mut [0; 8], Duration::from_millis(50))
    }
}

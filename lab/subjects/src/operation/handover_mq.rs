// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `pmqtest`: a message handed over through a POSIX queue.

use super::handover::{Handover, OneWay, Receiver, Sender};
use super::message_queue::MessageQueue;
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::SideError;
use doorbell_results::configuration::Configuration;

/// Two queues of one message.
#[derive(Debug)]
pub(super) struct HandoverMq;

/// Bytes of a message; the tool's are of this order, and up to a
/// cache line the size does not matter.
const MESSAGE: usize = 8;

impl Operation for HandoverMq {
    fn name(&self) -> &'static str {
        "handover-mq"
    }
    fn form(&self) -> Form {
        Form::two_sides("hand-over", 1)
    }
    fn usual(&self) -> bool {
        false
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of pmqtest: a message through a POSIX queue, one way",
            how: "The sender stamps and sends; the receiver, asleep in mq_receive, stamps, sleeps \
                200 us and answers through a second queue, on which the sender waits.",
            kernel: "A message for a sleeping receiver is handed to it directly, without being queued.",
            limits: "Run it with --scheduler fifo and on one core as the tool does; its -a pins \
                both sides to one CPU.",
            sources: &["rt-tests, pmqtest.c", "mq_overview(7)"],
        }
    }
    fn open(&self, site: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        let queue = || MessageQueue::make(site, 1, MESSAGE as i64);
        Ok(Box::new(OneWay(Queues { there: queue()?, back: queue()? })))
    }
}

#[derive(Debug, Clone, Copy)]
struct Queues {
    there: MessageQueue,
    back: MessageQueue,
}

impl Handover for Queues {
    type Sender = Queues;
    type Receiver = Queues;
    fn sender(&self) -> Result<Queues, SideError> {
        Ok(*self)
    }
    fn receiver(&self) -> Result<Queues, SideError> {
        Ok(*self)
    }
}

impl Sender for Queues {
    #[inline]
    fn release(&mut self) -> Result<(), Fault> {
        self.there.send(&[1; MESSAGE], 1)
    }
    #[inline]
    fn turn(&mut self) -> Result<(), Fault> {
        self.back.receive(&mut [0; MESSAGE])
    }
}

impl Receiver for Queues {
    #[inline]
    fn acquire(&mut self) -> Result<(), Fault> {
        self.there.receive(&mut [0; MESSAGE])
    }
    #[inline]
    fn allow(&mut self) -> Result<(), Fault> {
        self.back.send(&[2; MESSAGE], 1)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's bell, whose waiter is woken by SENDUIPI.

use doorbell::Tokens;

use super::library::{BellNotifier, BellWaiter, bell_segment};
use super::user_interrupt::{ByHardware, probe, start};
use super::{Explanation, Link, Mechanism, OpenError, Site, Unavailable};

/// This project's bell, whose waiter sleeps in poll on a vector.
#[derive(Debug)]
pub struct BellUintr;

/// The bell, whose tokens are user interrupts.
#[derive(Debug)]
pub struct InterruptedBell(std::sync::Arc<doorbell::rendezvous::Segment>);

impl Mechanism for BellUintr {
    type Link = InterruptedBell;
    const NAME: &'static str = "bell-uintr";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "this project's bell, woken by SENDUIPI",
            how: "As bell-eventfd, but that the waiter's descriptor is a vector of user interrupts \
                without a handler, which is read and polled as an eventfd is, and that the \
                notifier rings a sleeper by SENDUIPI.",
            kernel: "As uintr-epoll, with poll(2); the instruction is left out when nobody sleeps.",
            limits: "As bell-eventfd; for threads of a process and its children. For a sleeper it \
                costs the two sides together more than an eventfd (uintr/driver/README.md); what \
                it saves is the notifier's system call.",
            sources: &[
                "library/core/src/wake.rs",
                "library/doorbell/src/connected.rs",
                "uintr/driver/poll.c",
            ],
        }
    }

    fn available() -> Result<(), Unavailable> {
        probe::<ByHardware>()
    }
}

impl Link for InterruptedBell {
    type Notifier = BellNotifier;
    type Waiter = BellWaiter<doorbell::wait::Eventfd>;

    fn open(site: &Site) -> Result<Self, OpenError> {
        start::<ByHardware>()?;
        bell_segment(site, Tokens::UserInterrupts).map(Self)
    }

    fn waiter(&self) -> Result<Self::Waiter, OpenError> {
        Ok(BellWaiter::of(&self.0))
    }

    fn notifier(&self) -> Result<BellNotifier, OpenError> {
        Ok(BellNotifier::of(&self.0))
    }
}

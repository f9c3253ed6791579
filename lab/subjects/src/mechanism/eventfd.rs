// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd, waited for by reading it.

use std::os::fd::OwnedFd;

use rustix::event::EventfdFlags;

use super::descriptor::{DescriptorLink, Descriptors, Ends, LONGEST, again};
use super::{Explanation, Mechanism, OpenError, Site, Unavailable};

/// A counter in the kernel behind a descriptor; the waiter reads it.
#[derive(Debug)]
pub struct EventfdRead;

/// A fresh eventfd; one for each direction, since a shared one would let a side read its own token.
pub(super) fn fresh() -> Result<OwnedFd, OpenError> {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC).map_err(OpenError::of("eventfd"))
}

/// Whether the kernel gives one.
pub(super) fn probe() -> Result<(), Unavailable> {
    fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
}

impl Descriptors for EventfdRead {
    const TOKEN: usize = LONGEST;
    fn open(_: &Site) -> Result<Ends, OpenError> {
        let read = fresh()?;
        Ok(Ends { write: again(&read)?, read })
    }
}

impl Mechanism for EventfdRead {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "eventfd";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "eventfd, waited for with read(2)",
            how: "The notifier writes 1 to the eventfd; the waiter blocks in read(2), which takes \
                the whole sum and sets it to zero.",
            kernel: "Write: add under the context's lock, wake the wait queue. Read: sleep on that \
                queue while the sum is zero.",
            limits: "Eight bytes a call; notifications before a read merge into one sum. Blocks \
                the writer at 2^64-2. The timed wait is ppoll(2) before the read, a look is the \
                same with no time.",
            sources: &["eventfd(2)", "Linux fs/eventfd.c"],
        }
    }

    fn available() -> Result<(), Unavailable> {
        probe()
    }
}

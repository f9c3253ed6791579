// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd that gives back one notification at a time.

use rustix::event::{EventfdFlags, eventfd};

use super::descriptor::{DescriptorLink, Descriptors, Ends, LONGEST, again};
use super::{Explanation, Mechanism, OpenError, Site, Unavailable};

/// A counter in the kernel behind a descriptor, from which a read takes one.
#[derive(Debug)]
pub struct EventfdCount;

fn fresh() -> Result<Ends, OpenError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
    let read = eventfd(0, flags).map_err(OpenError::of("eventfd"))?;
    Ok(Ends { write: again(&read)?, read })
}

impl Descriptors for EventfdCount {
    const TOKEN: usize = LONGEST;
    fn open(_: &Site) -> Result<Ends, OpenError> {
        fresh()
    }
}

impl Mechanism for EventfdCount {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "eventfd-count";
    const COALESCES: bool = false;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "eventfd with EFD_SEMAPHORE, waited for with read(2)",
            how: "The notifier writes 1; the waiter blocks in read(2), which takes 1 off the sum.",
            kernel: "As eventfd; a read leaves what is beyond one, so the next returns at once.",
            limits: "Eight bytes a call. Blocks the writer at 2^64-2.",
            sources: &["eventfd(2)"],
        }
    }

    fn available() -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

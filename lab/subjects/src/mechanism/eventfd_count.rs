// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd that gives back one notification at a time.

use rustix::event::{EventfdFlags, eventfd};

use super::descriptor::{DescriptorLink, Descriptors, Ends, LONGEST, again};
use super::{Explanation, Mechanism, OpenError};

pub(crate) struct EventfdCount;

impl Descriptors for EventfdCount {
    const TOKEN: usize = LONGEST;
    fn open() -> Result<Ends, OpenError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
        let read = eventfd(0, flags).map_err(OpenError::of("eventfd"))?;
        Ok(Ends { write: again(&read)?, read })
    }
}

impl Mechanism for EventfdCount {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "eventfd-count";
    const COALESCES: bool = false;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd with EFD_SEMAPHORE, waited for with read(2)",
        how: "The notifier writes 1; the waiter blocks in read(2), which takes 1 off the sum.",
        kernel: "As eventfd; a read leaves what is beyond one, so the next returns at once.",
        limits: "Eight bytes a call. Blocks the writer at 2^64-2.",
        sources: &["eventfd(2)"],
    };
}

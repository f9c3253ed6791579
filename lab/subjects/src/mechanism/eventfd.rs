// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd, waited for by reading it.

use rustix::event::{EventfdFlags, eventfd};

use super::descriptor::{DescriptorLink, Descriptors, Ends, LONGEST, again};
use super::{Explanation, Mechanism, OpenError};

pub(crate) struct EventfdRead;

impl Descriptors for EventfdRead {
    const TOKEN: usize = LONGEST;
    fn open() -> Result<Ends, OpenError> {
        let read = eventfd(0, EventfdFlags::CLOEXEC).map_err(OpenError::of("eventfd"))?;
        Ok(Ends { write: again(&read)?, read })
    }
}

impl Mechanism for EventfdRead {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "eventfd";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd, waited for with read(2)",
        how: "The notifier writes 1 to the eventfd; the waiter blocks in read(2), which takes \
            the whole sum and sets it to zero.",
        kernel: "Write: add under the context's lock, wake the wait queue. Read: sleep on that \
            queue while the sum is zero.",
        limits: "Eight bytes a call; notifications before a read merge into one sum. Blocks \
            the writer at 2^64-2. The timed wait is ppoll(2) before the read, a check is the \
            same with a timeout of 0.",
        sources: &["eventfd(2)", "Linux fs/eventfd.c"],
    };
}

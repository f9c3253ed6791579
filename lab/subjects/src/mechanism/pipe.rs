// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pipe: one byte a notification.

use rustix::pipe::{PipeFlags, pipe_with};

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct Pipe;

impl Descriptors for Pipe {
    fn open() -> Result<Ends, OpenError> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(OpenError::of("pipe2"))?;
        Ok(Ends { read, write })
    }
}

impl Mechanism for Pipe {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "pipe";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "pipe, one byte a notification",
        how: "The notifier writes one byte into a pipe; the waiter blocks in read(2) for one \
            byte. Each direction has a pipe of its own.",
        kernel: "Write: take the pipe's mutex, append to the last page or take a new one, and \
            wake the reader if the pipe was empty (a synchronous wake, a hint that the writer \
            is about to sleep). Read: sleep while empty, then copy under the mutex.",
        limits: "65536 bytes by default, then the writer blocks; fcntl(F_SETPIPE_SZ) up to \
            /proc/sys/fs/pipe-max-size. The timed wait is ppoll(2) before the read, a check that \
            does not wait is the same with a timeout of 0.",
        sources: &[
            "pipe(7)",
            "Linux fs/pipe.c",
            "UnixBench context1, perf bench sched pipe: this protocol, both ways",
        ],
    };
}

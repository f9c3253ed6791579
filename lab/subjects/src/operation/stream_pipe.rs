// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `--switch-method pipe`: bytes through a pipe that holds one.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::figures::assumed;
use super::stream::{Stream, Turns};
use super::{Explanation, Fault, Form, OpenError, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "stream-pipe",
    form: Form::two_sides("write", 100),
    explanation: Explanation {
        summary: "the protocol of stress-ng --switch-method pipe: bytes one way through a pipe \
            that holds one",
        how: "One side writes single bytes into a pipe in packet mode cut down to one page, the \
            other reads them: a packet fills the page, so each write waits for the read before it.",
        kernel: "A write into a full pipe sleeps until the reader has emptied it; the reader \
            sleeps while it is empty.",
        limits: "stress-ng calls a write one switch; on one core the kernel makes up to two of it.",
        sources: &["stress-ng, stress-switch.c"],
    },
    usual: false,
    open: |_, _| {
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)
            .map_err(|error| OpenError::call("pipe2(O_DIRECT)", error))?;
        // Rounded up to one page by the kernel.
        fcntl_setpipe_size(&writes, 1).map_err(|error| OpenError::call("fcntl(F_SETPIPE_SZ)", error))?;
        Ok(Box::new(Turns(Packets { reads, writes })))
    },
    classic: |record| assumed(record, "stress-ng as printed", 1, "writes"),
    ..PLAIN
};

struct Packets {
    reads: OwnedFd,
    writes: OwnedFd,
}

impl Stream for Packets {
    #[inline]
    fn lead(&self) -> Result<(), Fault> {
        retry_on_intr(|| write(&self.writes, b"_")).map(drop).map_err(Fault::of("write"))
    }

    #[inline]
    fn follow(&self) -> Result<(), Fault> {
        match read(&self.reads, &mut [0_u8; 1]) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Fault::new("read", error)),
        }
    }

    fn free(&self) -> Result<(), Fault> {
        // A full pipe is what the other side is about to read, if it has not left already: another byte
        // might then wait for ever. In an empty one there is room, and nobody else writes.
        let mut watched = [PollFd::new(&self.writes, PollFlags::OUT)];
        let ready = poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
            .map_err(|error| Fault::new("poll", error))?;
        if ready > 0 { self.lead() } else { Ok(()) }
    }
}

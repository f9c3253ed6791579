// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two pipes, one each way, and messages of a few bytes.

use std::os::fd::OwnedFd;

use rustix::io::{read, retry_on_intr, write};

use crate::mechanism::{Fault, OpenError};
use doorbell_harness::role::Role;
use doorbell_harness::side::SideError;

/// Both pipes, open before the sides part.
pub(super) struct Pipes {
    there: (OwnedFd, OwnedFd),
    back: (OwnedFd, OwnedFd),
}

/// What one side reads from and writes to.
pub(super) struct PipeEnd {
    reads: OwnedFd,
    writes: OwnedFd,
}

impl Pipes {
    pub(super) fn open() -> Result<Self, OpenError> {
        let pipe = || {
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|error| OpenError::call("pipe2", error))
        };
        Ok(Self { there: pipe()?, back: pipe()? })
    }

    /// The end of `role`.
    pub(super) fn end(&self, role: Role) -> Result<PipeEnd, SideError> {
        let own = |fd: &OwnedFd| {
            fd.try_clone().map_err(|error| SideError::Fault(Fault::new("fcntl(F_DUPFD_CLOEXEC)", error)))
        };
        let (reads, writes) =
            if role.index() == 0 { (&self.back.0, &self.there.1) } else { (&self.there.0, &self.back.1) };
        Ok(PipeEnd { reads: own(reads)?, writes: own(writes)? })
    }
}

impl PipeEnd {
    /// Writes a whole message; a pipe takes it at once or not at all (PIPE_BUF).
    #[inline(always)]
    pub(super) fn send(&self, message: &[u8]) -> Result<(), Fault> {
        match retry_on_intr(|| write(&self.writes, message)) {
            Ok(written) if written == message.len() => Ok(()),
            Ok(written) => Err(Fault::new("write", format!("{written} of {} bytes", message.len()))),
            Err(error) => Err(Fault::new("write", error)),
        }
    }

    #[inline(always)]
    pub(super) fn receive(&self, message: &mut [u8]) -> Result<(), Fault> {
        match retry_on_intr(|| read(&self.reads, &mut *message)) {
            Ok(read) if read == message.len() => Ok(()),
            Ok(read) => Err(Fault::new("read", format!("{read} of {} bytes", message.len()))),
            Err(error) => Err(Fault::new("read", error)),
        }
    }
}

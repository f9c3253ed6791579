// SPDX-License-Identifier: MIT OR Apache-2.0
//! preadv2 and pwritev2 without flags: the caller sleeps until the device interrupts.

use std::os::fd::AsRawFd;

use super::{Engine, Explanation, Fault, Noticed, Place, Transfer};
use doorbell_results::configuration::Direction;

/// preadv2 or pwritev2 with some flags.
pub(super) struct Call<'buffer> {
    pub(super) place: Place<'buffer>,
    pub(super) flags: libc::c_int,
}

pub(super) const ENGINE: Engine = Engine {
    name: "sync",
    explanation: Explanation {
        summary: "preadv2 and pwritev2: one call a block, ended by an interrupt",
        how: "Calls preadv2(2) or pwritev2(2) on a file opened with O_DIRECT.",
        kernel: "Builds a request, gives it to the device, and sleeps. The device interrupts the \
            CPU that its queue belongs to; the handler completes the request and wakes the caller.",
        limits: "An interrupt on an idle CPU is in nobody's CPU time: what is said of CPU time \
            is the caller's.",
        sources: &["preadv2(2), open(2) O_DIRECT", "Linux block/fops.c, block/blk-mq.c"],
    },
    noticed: Noticed::ByInterrupt,
    kernel_thread: false,
    available: || Ok(()),
    open: |place| Ok(Box::new(Call { place, flags: 0 })),
};

impl Transfer for Call<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        let buffer = self.place.buffer;
        let vector = libc::iovec { iov_base: buffer.pointer().cast(), iov_len: buffer.bytes() };
        let (file, offset) = (self.place.file.as_raw_fd(), offset as libc::off_t);
        loop {
            let (call, moved) = match self.place.direction {
                Direction::Read => {
                    // SAFETY: the vector names the whole buffer, which lives through the call and which, by
                    // its invariant, nobody else touches meanwhile.
                    // JUSTIFICATION: the safe call takes a slice, and the bytes are the device's to write.
                    ("preadv2", unsafe { libc::preadv2(file, &raw const vector, 1, offset, self.flags) })
                }
                Direction::Write => {
                    // SAFETY: as above.
                    ("pwritev2", unsafe { libc::pwritev2(file, &raw const vector, 1, offset, self.flags) })
                }
            };
            if moved < 0 {
                let error = std::io::Error::last_os_error();
                if error.kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(Fault::new(call, error));
            }
            if moved as usize != buffer.bytes() {
                return Err(Fault::new(call, format!("{moved} of {} bytes at {offset}", buffer.bytes())));
            }
            return Ok(());
        }
    }
}

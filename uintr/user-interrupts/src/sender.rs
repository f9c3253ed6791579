// SPDX-License-Identifier: MIT OR Apache-2.0
//! A right to interrupt.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::{result, sys};

/// A connection of this process, all its threads, to one vector of one receiver, until it is dropped.
///
/// It holds a copy of the descriptor: the last close would revoke the vector, and what is sent then is SIGSEGV. A child of fork connects
/// for itself.
#[derive(Debug)]
pub struct Sender {
    index: u32,
    /// A child may have another connection by this index.
    process: u32,
    _open: OwnedFd,
}

/// Whether the CPU itself does it. Written once, before the first connection or receiver of the process.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn by_hardware() -> bool {
    // SAFETY: a word that the library writes once, atomically, before it returns what anything here is called on.
    unsafe { (&raw const sys::uintr_chosen).read_volatile() == sys::HARDWARE }
}

impl Sender {
    /// Connects to the vector that `descriptor` stands for: a [`Receiver::vector`](crate::Receiver::vector) or a
    /// [`Polled`](crate::Polled), made here, inherited or received.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: no vector's, or one of the other backend. `ESHUTDOWN`: the receiver has ended, or the vector was revoked.
    /// `ENOSPC`: [`CONNECTIONS`](crate::CONNECTIONS) are there. As [`Receiver::counting`](crate::Receiver::counting) where nothing
    /// was started.
    pub fn connect(descriptor: &impl AsFd) -> io::Result<Self> {
        let open = descriptor.as_fd().try_clone_to_owned()?;
        let index = result(sys::uintr_register_sender(open.as_raw_fd(), 0))?;
        Ok(Self { index: index.unsigned_abs(), process: std::process::id(), _open: open })
    }

    /// Connects to all of `descriptors`, in their order, or to none. A set of receivers is a slice
    /// of what this gives:
    ///
    /// ```
    /// use user_interrupts::{Backend, Receiver, Sender, start};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # start(&[Backend::Hardware, Backend::Signals]).map_err(std::io::Error::other)?;
    /// let receiver = Receiver::counting()?;
    /// let vectors = (0..8).map(|n| receiver.vector(n)).collect::<Result<Vec<_>, _>>()?;
    /// let senders = Sender::connect_all(&vectors)?;
    /// Sender::send_all(&senders[2..5]);
    /// receiver.unmask();
    /// assert_eq!(receiver.take(), 1 << 2 | 1 << 3 | 1 << 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Sender::connect`], of the first that could not be connected to.
    pub fn connect_all<'d, D: AsFd + 'd>(
        descriptors: impl IntoIterator<Item = &'d D>,
    ) -> io::Result<Vec<Self>> {
        descriptors.into_iter().map(Self::connect).collect()
    }

    /// [Sends](Sender::send) to each, in their order.
    #[inline]
    pub fn send_all<'s>(senders: impl IntoIterator<Item = &'s Self>) {
        senders.into_iter().for_each(Self::send);
    }

    /// Sends: one instruction after one test, with hardware. Nothing, if the receiver has ended. A
    /// vector that was [revoked](crate::Receiver::revoke) is SIGSEGV, with the signals backend as
    /// well.
    #[inline]
    pub fn send(&self) {
        #[cfg(target_arch = "x86_64")]
        if by_hardware() {
            // SAFETY: SENDUIPI with an index that this process is connected by. Not `nomem`: what was written before is seen by
            // whoever is interrupted.
            unsafe {
                std::arch::asm!(".byte 0xf3, 0x0f, 0xc7, 0xf0", in("rax") u64::from(self.index), options(nostack, preserves_flags));
            }
            return;
        }
        sys::uintr_send_call(self.index.into());
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _ = sys::uintr_unregister_sender(self.index.cast_signed(), 0);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vector that is no thread's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::{descriptor, sys};

/// What a read gives, and whether it waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// 1 each time, and not how often the vector was noticed since the last read.
    pub semaphore: bool,
    /// `EAGAIN` instead of waiting.
    pub nonblock: bool,
}

/// A vector without a handler: what is sent to it is read, and polled, as from an eventfd, by any thread that has the
/// descriptor.
///
/// poll(2), select(2), epoll(7) and io_uring find it readable as long as a read would give
/// something. It ends with the process that made it: with hardware whoever else holds the
/// descriptor is told by `POLLHUP` and the end of the file, with the signals backend (an eventfd)
/// nobody is told.
#[derive(Debug)]
pub struct Polled(OwnedFd);

impl Polled {
    /// A fresh one, close-on-exec.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: the user has as many receivers as the driver allows. `EMFILE`. As
    /// [`Receiver::counting`](crate::Receiver::counting) where nothing was started.
    pub fn new(style: Style) -> io::Result<Self> {
        let semaphore = if style.semaphore { sys::SEMAPHORE } else { 0 };
        let nonblock = if style.nonblock { sys::NONBLOCK } else { 0 };
        descriptor(sys::uintr_poll_fd(semaphore | nonblock)).map(Self)
    }

    /// How often it was noticed since the last read, at least 1: posts that meet before anybody notices are one.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: nothing, and the style says not to wait. `EINTR`: a signal's handler ran.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        // SAFETY: the buffer has the eight bytes that the call may write.
        match unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) } {
            8 => Ok(u64::from_ne_bytes(count)),
            // The end of the file: whoever made it has ended.
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Polled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Polled {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl From<Polled> for OwnedFd {
    fn from(polled: Polled) -> Self {
        polled.0
    }
}

/// One that came from elsewhere: inherited, or over a socket.
impl From<OwnedFd> for Polled {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

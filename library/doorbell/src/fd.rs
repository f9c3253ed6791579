// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bell as a file.

use crate::bell::Bell;
use crate::error::WaitError;
use crate::wait::MADE;
use crate::wait::{Adaptive, Wait};
use rustix::fd::{AsFd, BorrowedFd};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, RawFd};

/// A handle of a bell that is a file: readable from a ring on, until
/// [`heard`](Self::heard) is called.
///
/// In an event loop, watch it for reading (level- or edge-triggered) and call `heard` whenever it
/// is readable. Never read from it or write to it yourself.
///
/// ```
/// use doorbell::Bell;
/// use rustix::event::{PollFd, PollFlags, Timespec, poll};
///
/// let waiter = Bell::new().unwrap();
/// let ringer = waiter.clone();
/// let mut file = waiter.into_fd().unwrap();
/// ringer.ring();
/// ringer.ring();
/// poll(&mut [PollFd::new(&file, PollFlags::IN)], None).unwrap();
/// assert_eq!(file.heard().unwrap().unwrap().get(), 2);
/// let now = Timespec { tv_sec: 0, tv_nsec: 0 };
/// assert_eq!(poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&now)).unwrap(), 0);
/// ```
#[derive(Debug)]
pub struct BellFd<W = Adaptive> {
    bell: Bell<W>,
    index: usize,
}

impl<W: Wait> Bell<W> {
    /// This handle as a file that is readable from a ring on, for epoll, poll, mio or tokio.
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`] if all eventfds of the bell are in use.
    pub fn into_fd(self) -> Result<BellFd<W>, WaitError> {
        BellFd::new(self)
    }
}

impl<W: Wait> BellFd<W> {
    fn new(mut bell: Bell<W>) -> Result<Self, WaitError> {
        let (_, index) = bell.listener().slots().take_eventfd()?;
        if bell.arm()? {
            bell.state().put_token(index);
        }
        Ok(Self { bell, index })
    }

    /// Takes the rings since the last call and makes the file
    /// unreadable, until the next ring. Never waits.
    ///
    /// `None` if there were none: the file was readable for no reason, which happens.
    ///
    /// # Errors
    /// [`WaitError::PeerGone`] as for [`Bell::wait`]; then the file
    /// stays readable until all deaths are told.
    pub fn heard(&mut self) -> Result<Option<NonZeroU32>, WaitError> {
        if !self.bell.arm()? {
            return Ok(None);
        }
        let news = self.bell.take_news();
        if self.bell.has_news() {
            // Something came after `arm` looked, or is still to be told.
            self.bell.state().put_token(self.index);
        }
        news
    }

    /// The bell behind it, for ringing.
    pub fn bell(&self) -> &Bell<W> {
        &self.bell
    }
}

impl<W> AsFd for BellFd<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.state().eventfd(self.index).expect(MADE).as_fd()
    }
}

impl<W> AsRawFd for BellFd<W> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vector of user interrupts that wakes a waiter, and the right of each process to send it.

use crate::errno::errno;
use crate::error::Unmade;
use crate::process::Process;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicPtr, Ordering};
use user_interrupts::{Polled, Sender, Style};

/// The connection of one process.
#[derive(Debug)]
struct Connection {
    process: Process,
    sender: Sender,
}

/// That of this process, in memory of which a forked child has a copy. What is here was made by
/// `Box::into_raw` and is freed by nobody but the drop: a ring may be looking at it.
#[derive(Debug, Default)]
pub(crate) struct Connected(AtomicPtr<Connection>);

fn unmade(call: &'static str) -> impl Fn(io::Error) -> Unmade {
    move |error| (call, errno(&error))
}

impl Connected {
    /// A vector to which this process is connected.
    pub(crate) fn vector(&self) -> Result<OwnedFd, Unmade> {
        let style = Style { nonblock: true, semaphore: false };
        let vector = OwnedFd::from(Polled::new(style).map_err(unmade("uintr_poll_fd"))?);
        self.connect(&vector).map_err(unmade("uintr_register_sender"))?;
        Ok(vector)
    }

    /// Sends it. Nothing, where its maker has ended.
    #[inline]
    pub(crate) fn send(&self, vector: &OwnedFd) {
        match self.own() {
            Some(connection) => connection.sender.send(),
            None => self.send_first(vector),
        }
    }

    #[inline]
    fn own(&self) -> Option<&Connection> {
        // Acquire: pairs with the exchange in `connect`.
        // SAFETY: null, or made by `connect` and not freed while `self` is borrowed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
            .filter(|connection| connection.process.is_current_generation())
    }

    /// In a child.
    #[cold]
    fn send_first(&self, vector: &OwnedFd) {
        match self.connect(vector) {
            Ok(connection) => connection.sender.send(),
            Err(error) if error.raw_os_error() == Some(Errno::SHUTDOWN.raw_os_error()) => {}
            Err(error) => {
                eprintln!(
                    "doorbell: a bell's waiter cannot be woken: this process cannot be connected \
                     to its vector: {error}"
                );
                std::process::abort();
            }
        }
    }

    fn connect(&self, vector: &OwnedFd) -> io::Result<&Connection> {
        let connection = Connection { process: Process::current(), sender: Sender::connect(vector)? };
        let made = Box::into_raw(Box::new(connection));
        let before = self.0.load(Ordering::Acquire);
        // What is there is another process's, unless another thread
        // was faster. Release: who finds it finds it whole.
        let taken = self.own().is_none()
            && self.0.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !taken {
            // SAFETY: made above, and nobody else knows it.
            drop(unsafe { Box::from_raw(made) });
        }
        self.own().ok_or_else(|| io::Error::from(Errno::NOTCONN))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if self.own().is_some() {
            // SAFETY: made by `connect`, and nobody borrows `self` any more. What a child has a copy of is
            // its parent's, and stays.
            drop(unsafe { Box::from_raw(*self.0.get_mut()) });
        }
    }
}

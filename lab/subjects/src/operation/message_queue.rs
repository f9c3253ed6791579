// SPDX-License-Identifier: MIT OR Apache-2.0
//! A POSIX message queue of a trial.

use std::ptr::null_mut;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};

use crate::mechanism::c_call::{c_string, result};
use crate::mechanism::{Fault, OpenError, Site};
use doorbell_harness::deadline::realtime;
use doorbell_harness::run_dir::Note;

/// The queue: its name is gone once it is open, the descriptor is
/// inherited by the sides and closed by their end.
pub(super) struct MessageQueue(libc::mqd_t);

impl MessageQueue {
    /// Makes a queue for `depth` messages of at most `size` bytes.
    pub(super) fn make(site: &Site, depth: i64, size: i64) -> Result<Self, OpenError> {
        let name = format!("/{}", site.name()?);
        site.leave_note(Note::MessageQueue(name.clone()))?;
        let name = c_string(&name)?;
        // SAFETY: mq_attr is plain data, valid when zero.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = depth;
        attributes.mq_msgsize = size;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: `name` and `attributes` live through the call; a mode and attributes follow O_CREAT.
        // JUSTIFICATION: rustix has no POSIX message queues.
        let queue = result(unsafe {
            libc::mq_open(name.as_ptr(), flags, 0o600 as libc::c_uint, &raw const attributes)
        })
        .map_err(|error| {
            OpenError::with_cure("mq_open", error, "raise `ulimit -q` or fs.mqueue.queues_max")
        })?;
        // SAFETY: `name` lives through the call. A failure leaves the name to the note.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        Ok(Self(queue))
    }

    /// Sends, waiting while the queue is full.
    #[inline(always)]
    pub(super) fn send(&self, message: &[u8], priority: u32) -> Result<(), Fault> {
        let (from, length) = (message.as_ptr().cast(), message.len());
        // SAFETY: `message` is readable for its length; the queue is open until this process ends.
        retry_on_intr(|| result(unsafe { libc::mq_send(self.0, from, length, priority) }))
            .map(drop)
            .map_err(Fault::of("mq_send"))
    }

    /// Receives, waiting while the queue is empty; `buffer` must hold the queue's largest message.
    #[inline(always)]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<(), Fault> {
        let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: `buffer` is writable for its length; a null priority pointer is allowed.
        retry_on_intr(|| result(unsafe { libc::mq_receive(self.0, to, length, null_mut()) } as i64))
            .map(drop)
            .map_err(Fault::of("mq_receive"))
    }

    /// Takes what still comes until nothing has for `patience`: a
    /// sender blocked on the full queue gets on.
    pub(super) fn drain(&self, buffer: &mut [u8], patience: Duration) -> Result<(), Fault> {
        let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        loop {
            let until = realtime(patience);
            // SAFETY: as in `receive`, and `until` lives through the call.
            let taken = unsafe { libc::mq_timedreceive(self.0, to, length, null_mut(), &raw const until) };
            match result(taken as i64) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::TIMEDOUT) => return Ok(()),
                Err(error) => return Err(Fault::new("mq_timedreceive", error)),
            }
        }
    }
}

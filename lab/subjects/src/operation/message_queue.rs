// SPDX-License-Identifier: MIT OR Apache-2.0
//! A POSIX message queue of a trial.

use std::ffi::CString;
use std::time::Duration;

use crate::mechanism::{Fault, OpenError, Site};
use doorbell_harness::run_dir::Note;

/// The queue: its name is gone once it is open, the descriptor is
/// inherited by the sides and closed by their end.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageQueue(libc::mqd_t);

impl MessageQueue {
    /// Makes a queue for `depth` messages of at most `size` bytes.
    pub(super) fn make(site: &Site, depth: i64, size: i64) -> Result<Self, OpenError> {
        let name = format!("/{}", site.name()?);
        site.leave_note(Note::MessageQueue(name.clone()))?;
        let name = CString::new(name).map_err(|error| OpenError::call("mq_open", error))?;
        // SAFETY: mq_attr is plain data, valid when zero.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = depth;
        attributes.mq_msgsize = size;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: `name` and `attributes` live through the call; a mode and attributes follow O_CREAT.
        // JUSTIFICATION: rustix has no POSIX message queues.
        let queue =
            unsafe { libc::mq_open(name.as_ptr(), flags, 0o600 as libc::c_uint, &raw const attributes) };
        if queue < 0 {
            return Err(OpenError::with_cure(
                "mq_open",
                std::io::Error::last_os_error(),
                "raise `ulimit -q` or fs.mqueue.queues_max",
            ));
        }
        // SAFETY: `name` lives through the call. A failure leaves the name to the note.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        Ok(Self(queue))
    }

    /// Sends, waiting while the queue is full.
    #[inline(always)]
    pub(super) fn send(self, message: &[u8], priority: u32) -> Result<(), Fault> {
        loop {
            // SAFETY: `message` is readable for its length; the queue is open as long as this process lives.
            if unsafe { libc::mq_send(self.0, message.as_ptr().cast(), message.len(), priority) } == 0 {
                return Ok(());
            }
            interrupted("mq_send")?;
        }
    }

    /// Receives, waiting while the queue is empty; `buffer` must hold the queue's largest message.
    #[inline(always)]
    pub(super) fn receive(self, buffer: &mut [u8]) -> Result<(), Fault> {
        loop {
            let null = std::ptr::null_mut();
            // SAFETY: `buffer` is writable for its length; a null priority pointer is allowed.
            if unsafe { libc::mq_receive(self.0, buffer.as_mut_ptr().cast(), buffer.len(), null) } >= 0 {
                return Ok(());
            }
            interrupted("mq_receive")?;
        }
    }

    /// Takes what still comes until nothing has for `patience`: a
    /// sender blocked on the full queue gets on.
    pub(super) fn drain(self, buffer: &mut [u8], patience: Duration) -> Result<(), Fault> {
        loop {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
            let nanoseconds = now.tv_nsec as u128 + patience.as_nanos();
            let until = libc::timespec {
                tv_sec: now.tv_sec + (nanoseconds / 1_000_000_000) as i64,
                tv_nsec: (nanoseconds % 1_000_000_000) as i64,
            };
            let null = std::ptr::null_mut();
            // SAFETY: as in `receive`, and `until` lives through the call.
            let length = unsafe {
                libc::mq_timedreceive(
                    self.0,
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    null,
                    &raw const until,
                )
            };
            if length < 0 {
                let error = std::io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::ETIMEDOUT) => return Ok(()),
                    Some(libc::EINTR) => {}
                    _ => return Err(Fault::new("mq_timedreceive", error)),
                }
            }
        }
    }
}

/// Nothing where the last call was interrupted by a signal, else its fault.
fn interrupted(call: &'static str) -> Result<(), Fault> {
    let error = std::io::Error::last_os_error();
    if error.kind() == std::io::ErrorKind::Interrupted { Ok(()) } else { Err(Fault::new(call, error)) }
}

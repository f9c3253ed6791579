// SPDX-License-Identifier: MIT OR Apache-2.0
//! A POSIX message queue: one message of one byte a notification.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::Resource;
use rustix::thread::CapabilitySet;

use super::c_call::{absent_or_made, c_string, result};
use super::deadline::realtime;
use super::{
    Carries, Explanation, Fault, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};
use doorbell_harness::run_dir::Note;

pub(crate) struct MqPosix;

pub(crate) struct MqPosixLink(CString);

/// Either end: on Linux a message queue descriptor is a file descriptor (mq_overview(7)).
pub(crate) struct MqPosixEnd(OwnedFd);

/// Messages a queue holds where the system does not set a lower
/// limit: its default limit for every user.
const MESSAGES: u64 = 10;

/// Queues of a trial: one each way.
const QUEUES: u64 = 2;

/// What the kernel charges a user for a queue of [`MESSAGES`] one-byte messages: each with a
/// pointer and a tree node of 48 bytes (`mqueue_get_inode` in Linux ipc/mqueue.c), rounded up.
const QUEUE_BYTES: u64 = 1024;

/// A limit of the system on message queues; none where it is not shown.
fn limit(name: &str) -> Option<u64> {
    doorbell_files::kernel(format!("/proc/sys/fs/mqueue/{name}")).ok()?.trim().parse().ok()
}

/// Messages to ask a queue for.
fn messages() -> u64 {
    limit("msg_max").map_or(MESSAGES, |most| most.clamp(1, MESSAGES))
}

/// Opens the queue `name`; makes one if `flags` say so.
fn open(name: &CStr, flags: libc::c_int) -> Result<MqPosixEnd, Errno> {
    // SAFETY: `mq_attr` is plain data, valid when zero.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = messages() as libc::c_long;
    attributes.mq_msgsize = 1;
    let mode: libc::mode_t = 0o600;
    // SAFETY: name and attributes live through the call; without
    // O_CREAT mode and attributes are not looked at.
    let queue = result(unsafe {
        libc::mq_open(name.as_ptr(), flags | libc::O_CLOEXEC, mode, &raw const attributes)
    })?;
    // SAFETY: the descriptor is new and nobody else's; mq_close(3) is close(2) on Linux.
    Ok(MqPosixEnd(unsafe { OwnedFd::from_raw_fd(queue) }))
}

impl Mechanism for MqPosix {
    type Link = MqPosixLink;
    const NAME: &'static str = "mq-posix";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;

    const EXPLANATION: Explanation = Explanation {
        summary: "POSIX message queue, one-byte messages",
        how: "Each side opens the queue by its name with mq_open. The notifier calls mq_send with \
            one byte at priority 0, the waiter mq_receive. Each direction has a queue of its own.",
        kernel: "Send: copy the message, lock the queue; if a receiver sleeps hand it the \
            message directly and wake it, else put it into a tree by priority. Receive: take \
            the first message or sleep.",
        limits: "A queue holds 10 messages here, or as few as /proc/sys/fs/mqueue/msg_max \
            allows; then the sender blocks. 256 queues on the system (queues_max), and their \
            bytes count against RLIMIT_MSGQUEUE. Names outlive their users. The timed wait is \
            mq_timedreceive, whose deadline is on the real-time clock; a look is the same with \
            a deadline long past.",
        sources: &[
            "mq_overview(7), mq_receive(3)",
            "Linux ipc/mqueue.c, pipelined_send",
            "rt-tests pmqtest, stress-ng --switch-method mq: this mechanism",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        // A name nobody has: only its absence may be the error.
        absent_or_made("mq_open(3)", open(c"/doorbell-probe", libc::O_RDONLY))?;
        // Making one to see whether it can be made would leave it
        // behind if this process were killed in between.
        let own = rustix::process::getrlimit(Resource::Msgqueue).current;
        let privileged = rustix::thread::capabilities(None)
            .is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_RESOURCE));
        lacking(limit("queues_max"), own, privileged).map_or(Ok(()), |lack| Err(Unavailable::because(lack)))
    }
}

/// What keeps a user from making the queues of a trial, given the system's limit on queues and the
/// user's own on bytes; who is privileged is not held to the first.
fn lacking(queues_max: Option<u64>, own_bytes: Option<u64>, privileged: bool) -> Option<String> {
    if let Some(most) = queues_max.filter(|most| *most < QUEUES && !privileged) {
        return Some(format!(
            "the system allows {most} POSIX message queues and a trial takes {QUEUES}: raise \
             /proc/sys/fs/mqueue/queues_max"
        ));
    }
    let most = own_bytes.filter(|most| *most < QUEUES * QUEUE_BYTES)?;
    Some(format!(
        "this user's POSIX message queues may take {most} bytes and a trial's take up to {}: raise \
         `ulimit -q`",
        QUEUES * QUEUE_BYTES
    ))
}

impl Link for MqPosixLink {
    type Notifier = MqPosixEnd;
    type Waiter = MqPosixEnd;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let name = format!("/{}", site.name()?);
        let c_name = c_string(&name)?;
        site.leave_note(Note::MessageQueue(name))?;
        open(&c_name, libc::O_CREAT | libc::O_EXCL | libc::O_RDONLY).map_err(|error| {
            OpenError::with_cure("mq_open", error, "raise `ulimit -q` or /proc/sys/fs/mqueue/queues_max")
        })?;
        Ok(Self(c_name))
    }
    fn waiter(&self) -> Result<MqPosixEnd, OpenError> {
        open(&self.0, libc::O_RDONLY).map_err(OpenError::of("mq_open"))
    }
    fn notifier(&self) -> Result<MqPosixEnd, OpenError> {
        open(&self.0, libc::O_WRONLY).map_err(OpenError::of("mq_open"))
    }
}

impl Notifier for MqPosixEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let message = [0_u8];
        // SAFETY: one byte from a buffer of one.
        let send = || result(unsafe { libc::mq_send(self.0.as_raw_fd(), message.as_ptr().cast(), 1, 0) });
        retry_on_intr(send).map(drop).map_err(Fault::of("mq_send"))
    }
}

impl MqPosixEnd {
    /// Receives a message before `deadline`, or whenever it comes.
    #[inline]
    fn receive(&self, deadline: Option<&libc::timespec>) -> Result<Woken, Fault> {
        let mut message = [0_u8];
        let (buffer, no_priority) = (message.as_mut_ptr().cast(), ptr::null_mut());
        let receive = || {
            let queue = self.0.as_raw_fd();
            // SAFETY: the buffer has one byte, the queue's message size; the deadline lives through the call.
            let length = unsafe {
                match deadline {
                    None => libc::mq_receive(queue, buffer, 1, no_priority),
                    Some(deadline) => libc::mq_timedreceive(queue, buffer, 1, no_priority, deadline),
                }
            };
            result(length as i64)
        };
        match retry_on_intr(receive) {
            Ok(_) => Ok(Woken::Notified),
            Err(Errno::TIMEDOUT) => Ok(Woken::TimedOut),
            Err(error) => Err(Fault::new("mq_receive", error)),
        }
    }
}

impl Waiter for MqPosixEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.receive(None).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.receive(Some(&realtime(timeout)))
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        let past = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        Ok(self.receive(Some(&past))? == Woken::Notified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probe once saw only that a queue nobody had made was not there.
    #[test]
    fn limits_that_no_trial_fits_in_are_seen_before_one_is_tried() {
        assert_eq!(lacking(Some(256), Some(819_200), false), None);
        assert_eq!(lacking(None, None, false), None);
        assert!(lacking(Some(1), Some(819_200), false).unwrap().contains("queues_max"));
        assert_eq!(lacking(Some(1), Some(819_200), true), None, "the privileged are not held to it");
        assert!(lacking(Some(256), Some(0), true).unwrap().contains("ulimit -q"));
    }

    #[test]
    fn a_queue_is_asked_for_no_more_than_the_system_gives() {
        let most = limit("msg_max").unwrap_or(MESSAGES);
        assert!((1..=MESSAGES).contains(&messages()) && messages() <= most.max(1));
    }
}

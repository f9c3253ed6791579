// SPDX-License-Identifier: MIT OR Apache-2.0
//! A System V message queue: one message of one byte a notification.

use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};

use super::alarm::Alarm;
use super::c_call::{PROBE_KEY, absent_or_made, result};
use super::deadline::Deadline;
use super::{
    Carries, Explanation, Fault, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};
use doorbell_harness::run_dir::Note;

pub(crate) struct MqSysv;

pub(crate) struct MqSysvLink(libc::c_int);

pub(crate) struct Sender(libc::c_int);

pub(crate) struct Receiver {
    queue: libc::c_int,
    alarm: Alarm,
}

/// A message as the kernel takes it: its type, then its text.
#[repr(C)]
struct Message {
    kind: libc::c_long,
    text: [u8; 1],
}

/// Receives a message of any type.
#[inline]
fn receive(queue: libc::c_int, flags: libc::c_int) -> Result<(), Errno> {
    let mut message = Message { kind: 0, text: [0] };
    // SAFETY: the buffer has room for a type and one byte of text, as the size says.
    // JUSTIFICATION: rustix has no System V message queues.
    let length = unsafe { libc::msgrcv(queue, (&raw mut message).cast(), message.text.len(), 0, flags) };
    result(length as i64).map(drop)
}

impl Mechanism for MqSysv {
    type Link = MqSysvLink;
    const NAME: &'static str = "mq-sysv";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const TIMED: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "System V message queue, one-byte messages",
        how: "msgget makes a queue. The notifier calls msgsnd with one byte, the waiter msgrcv \
            for a message of any type. Each direction has a queue of its own.",
        kernel: "Send: copy the message, lock the queue; if a receiver sleeps that wants this \
            type hand it the message directly and wake it, else append it. Receive: take the \
            first that fits or sleep.",
        limits: "16384 bytes a queue by default (/proc/sys/kernel/msgmnb), 32000 queues (msgmni); \
            then the sender blocks. Queues outlive their users and are seen by all in the same IPC \
            namespace. There is no timed receive: the timed wait sets a POSIX timer whose signal \
            interrupts msgrcv, which costs two system calls more, and may end up to 1 ms late.",
        sources: &[
            "msgop(2), msgget(2), proc_sys_kernel(5)",
            "Linux ipc/msg.c, pipelined_send",
            "goldsborough/ipc-bench mq: this mechanism, in spite of its name",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        // SAFETY: takes integers only.
        absent_or_made("msgget(2)", result(unsafe { libc::msgget(PROBE_KEY, 0) }))
    }
}

impl Link for MqSysvLink {
    type Notifier = Sender;
    type Waiter = Receiver;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let key = site.key()?;
        site.leave_note(Note::SystemVMessages(key))?;
        // SAFETY: takes integers only.
        let queue = result(unsafe { libc::msgget(key, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) });
        queue.map(Self).map_err(|error| {
            OpenError::with_cure(
                "msgget",
                error,
                "remove queues that nobody uses (`ipcs -q`, `ipcrm -q`) or raise /proc/sys/kernel/msgmni",
            )
        })
    }
    fn waiter(&self) -> Result<Receiver, OpenError> {
        Ok(Receiver { queue: self.0, alarm: Alarm::new()? })
    }
    fn notifier(&self) -> Result<Sender, OpenError> {
        Ok(Sender(self.0))
    }
}

impl Notifier for Sender {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let message = Message { kind: 1, text: [0] };
        // SAFETY: the message has a type and as much text as the size says.
        // JUSTIFICATION: rustix has no System V message queues.
        let send =
            || result(unsafe { libc::msgsnd(self.0, (&raw const message).cast(), message.text.len(), 0) });
        retry_on_intr(send).map(drop).map_err(Fault::of("msgsnd"))
    }
}

impl Waiter for Receiver {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        retry_on_intr(|| receive(self.queue, 0)).map_err(Fault::of("msgrcv"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        self.alarm.set(timeout);
        let woken = loop {
            match receive(self.queue, 0) {
                Ok(()) => break Ok(Woken::Notified),
                Err(Errno::INTR) if deadline.rest().is_none() => break Ok(Woken::TimedOut),
                Err(Errno::INTR) => {}
                Err(error) => break Err(Fault::new("msgrcv", error)),
            }
        };
        self.alarm.silence();
        woken
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        match receive(self.queue, libc::IPC_NOWAIT) {
            Ok(()) => Ok(true),
            Err(Errno::NOMSG | Errno::INTR) => Ok(false),
            Err(error) => Err(Fault::new("msgrcv(IPC_NOWAIT)", error)),
        }
    }
}

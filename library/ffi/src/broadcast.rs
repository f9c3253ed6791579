// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sender, many receivers.

use crate::bell::at;
use crate::error::{Failure, came, doorbell_status, guard, guard_all};
use crate::lock::{Locked, lock};
use crate::pointer::{Out, bytes, free, guard_into, guard_new, guard_or, lent};
use crate::rendezvous::doorbell_connection;
use doorbell::channel::broadcast::{Ended, JoinError, Publisher, Subscriber, WhenSlow};
use doorbell::channel::{RecvError, SendError};
use doorbell::peer::Trust;
use doorbell::select::Selectable;
use doorbell::{Deadline, WaitError};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::sync::Mutex;

/// The publisher waits for this subscriber, until its deadline: for
/// those it depends on and trusts to go on.
pub const DOORBELL_HOLD_BACK: u32 = 0;
/// The subscription of one that is too slow ends; it is told DOORBELL_DROPPED.
pub const DOORBELL_DROP: u32 = 1;
/// One that is too slow misses messages, and is told how many.
pub const DOORBELL_GAP: u32 = 2;

/// The publishing end of a broadcast. One thread at a time: a second
/// is refused with DOORBELL_IN_USE.
#[derive(Debug)]
pub struct doorbell_publisher(Mutex<Publishing>);

/// One subscription to a broadcast. One thread at a time: a second is refused with DOORBELL_IN_USE.
#[derive(Debug)]
pub struct doorbell_subscriber(pub(crate) Mutex<Subscribing>);

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<doorbell_publisher>();
    shared_by_threads::<doorbell_subscriber>();
};

#[derive(Debug)]
struct Publishing {
    publisher: Publisher,
    /// Subscriptions that ended and were not asked for yet.
    ended: VecDeque<(u64, Ended)>,
}

/// What C does with a subscriber, whomever it trusts.
trait Receive: Selectable + Send + std::fmt::Debug {
    fn receive(&mut self, to: &mut Vec<u8>, deadline: Option<Deadline>) -> Result<Option<u64>, RecvError>;
    fn fd(&mut self) -> Result<i32, WaitError>;
    fn listen(&mut self) -> Result<bool, WaitError>;
}

impl<T: Trust> Receive for Subscriber<T> {
    fn receive(&mut self, to: &mut Vec<u8>, deadline: Option<Deadline>) -> Result<Option<u64>, RecvError> {
        self.recv_into_deadline(to, deadline)
    }

    fn fd(&mut self) -> Result<i32, WaitError> {
        Ok(self.file()?.as_raw_fd())
    }

    fn listen(&mut self) -> Result<bool, WaitError> {
        self.listen()
    }
}

#[derive(Debug)]
pub(crate) struct Subscribing {
    subscriber: Box<dyn Receive>,
    message: Vec<u8>,
    /// How many were missed before the message that is kept, for
    /// there was no room for it at the caller's.
    kept: Option<u64>,
}

impl Locked for Subscribing {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        match self.kept {
            None => Ok(&mut *self.subscriber),
            Some(_) => {
                Err(Failure::invalid("a message is kept that was too long for its buffer; copy it first"))
            }
        }
    }
}

impl doorbell_subscriber {
    fn of<T: Trust>(subscriber: Subscriber<T>) -> Self {
        Self(Mutex::new(Subscribing { subscriber: Box::new(subscriber), message: Vec::new(), kept: None }))
    }
}

fn when_slow(code: u32) -> Result<WhenSlow, Failure> {
    match code {
        DOORBELL_HOLD_BACK => Ok(WhenSlow::HoldBack),
        DOORBELL_DROP => Ok(WhenSlow::Drop),
        DOORBELL_GAP => Ok(WhenSlow::Gap),
        _ => Err(Failure::invalid(format!("{code} is not what can happen to a slow subscriber"))),
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Attach(error) => error.into(),
            JoinError::Meet(error) => error.into(),
            JoinError::Violation(violation) => violation.into(),
            // Another lane was admitted first.
            _ => Self::invalid(error.to_string()),
        }
    }
}

/// Makes a log of at least `capacity` bytes, without subscribers. The
/// longest message takes about three eighths of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_new(
    capacity: u64,
    publisher: *mut *mut doorbell_publisher,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(publisher, "publisher", || {
            let publisher = Publisher::new(capacity)?;
            Ok(doorbell_publisher(Mutex::new(Publishing { publisher, ended: VecDeque::new() })))
        })
    }
}

/// Ends all subscriptions. Each subscriber gets what was published, and is then told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_free(publisher: *mut doorbell_publisher) {
    // SAFETY: the header's contract.
    unsafe { free(publisher) };
}

/// Admits the peer, which calls doorbell_connection_subscribe() with the same `lane` of the segment
/// they share. It receives what is published from now on. `slow` is DOORBELL_HOLD_BACK,
/// DOORBELL_DROP or DOORBELL_GAP; `number` becomes the subscriber's number here. The connection may
/// be freed: the connection is kept until the subscription ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_admit(
    publisher: *const doorbell_publisher,
    connection: *const doorbell_connection,
    lane: u32,
    slow: u32,
    number: *mut u64,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(number, "number", || {
            let (publisher, connection) = (lent(publisher, "publisher")?, lent(connection, "connection")?);
            let slow = when_slow(slow)?;
            Ok(lock(&publisher.0)?.publisher.admit(connection.connection(), lane, slow)?)
        })
    }
}

/// Makes a subscriber of this process, which may be given to another thread. It receives what is
/// published from now on. `slow` is DOORBELL_HOLD_BACK, DOORBELL_DROP or DOORBELL_GAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_subscribe(
    publisher: *const doorbell_publisher,
    slow: u32,
    subscriber: *mut *mut doorbell_subscriber,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(subscriber, "subscriber", || {
            let mut publishing = lock(&lent(publisher, "publisher")?.0)?;
            Ok(doorbell_subscriber::of(publishing.publisher.subscribe(when_slow(slow)?)?))
        })
    }
}

/// How many subscribers there are; 0 for NULL or while another thread uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_subscribers(publisher: *const doorbell_publisher) -> usize {
    // SAFETY: the header's contract.
    guard_or(0, || Ok(lock(&unsafe { lent(publisher, "publisher") }?.0)?.publisher.subscribers()))
}

/// Gives whoever subscribes from now on the last `most` messages first, or as many of them as the
/// log still has: 0, if this is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_set_history(
    publisher: *const doorbell_publisher,
    most: usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        lock(&unsafe { lent(publisher, "publisher") }?.0)?.publisher.set_history(most);
        Ok(())
    })
}

/// The longest message; 0 for NULL or while another thread uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_longest(publisher: *const doorbell_publisher) -> u64 {
    // SAFETY: the header's contract.
    guard_or(0, || Ok(lock(&unsafe { lent(publisher, "publisher") }?.0)?.publisher.longest()))
}

/// Publishes `length` bytes as one message. Waits while a subscriber that may do so holds it back,
/// until `deadline`: then DOORBELL_TIMED_OUT. The end of a subscription fails no publication;
/// doorbell_publisher_ended() tells of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_publish(
    publisher: *const doorbell_publisher,
    message: *const c_void,
    length: usize,
    deadline: u64,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (publisher, message) = unsafe { (lent(publisher, "publisher")?, bytes(message.cast(), length)?) };
        match lock(&publisher.0)?.publisher.publish_deadline(message, at(deadline)) {
            Ok(()) => Ok(came(Some(()), |()| {})),
            Err(SendError::Full | SendError::TimedOut) => Ok(came(None::<()>, |()| {})),
            Err(error) => Err(error.into()),
        }
    })
}

/// A subscription that ended, each once: DOORBELL_TIMED_OUT if there is none that was not told.
/// `number` becomes the subscriber's number, and `how` DOORBELL_CLOSED if it left,
/// DOORBELL_PEER_GONE if it hung up or died, DOORBELL_DROPPED if it was too slow,
/// DOORBELL_VIOLATION if it broke the protocol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_publisher_ended(
    publisher: *const doorbell_publisher,
    number: *mut u64,
    how: *mut doorbell_status,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (publisher, number, out) =
            unsafe { (lent(publisher, "publisher")?, Out::new(number, "number")?, Out::new(how, "how")?) };
        let mut publishing = lock(&publisher.0)?;
        let Publishing { publisher, ended } = &mut *publishing;
        ended.extend(publisher.ended());
        Ok(came(ended.pop_front(), |(whose, how)| {
            number.put(whose);
            out.put(match how {
                Ended::Left => doorbell_status::DOORBELL_CLOSED,
                Ended::Gone(_) => doorbell_status::DOORBELL_PEER_GONE,
                Ended::Dropped => doorbell_status::DOORBELL_DROPPED,
                // The enum may grow by other reasons to end a subscription for what a subscriber did.
                _ => doorbell_status::DOORBELL_VIOLATION,
            });
        }))
    })
}

/// Subscribes at the peer, which calls doorbell_publisher_admit() with the same `lane` of the
/// segment they share; waits for that for up to 30 seconds. The connection may be freed: the
/// subscription keeps the connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_subscribe(
    connection: *const doorbell_connection,
    lane: u32,
    subscriber: *mut *mut doorbell_subscriber,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(subscriber, "subscriber", || {
            let connection = lent(connection, "connection")?.connection();
            Ok(doorbell_subscriber::of(Subscriber::join(connection, lane)?))
        })
    }
}

/// Ends the subscription.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_subscriber_free(subscriber: *mut doorbell_subscriber) {
    // SAFETY: the header's contract.
    unsafe { free(subscriber) };
}

/// Copies the next message to `to`, where `size` bytes are. Waits while there is none, until
/// `deadline`: then DOORBELL_TIMED_OUT. `length` becomes the message's length and `missed` how many
/// were missed directly before it. If the length is more than `size`, nothing is copied, the
/// message is kept for the next call, and both are written: DOORBELL_TOO_LONG. DOORBELL_CLOSED,
/// DOORBELL_PEER_GONE or DOORBELL_DROPPED when the subscription has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_subscriber_copy(
    subscriber: *const doorbell_subscriber,
    deadline: u64,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
    missed: *mut u64,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (subscriber, length, missed) = unsafe {
            (lent(subscriber, "subscriber")?, Out::new(length, "length")?, Out::new(missed, "missed")?)
        };
        if to.is_null() && size > 0 {
            return Err(Failure::null("to"));
        }
        let mut subscribing = lock(&subscriber.0)?;
        let Subscribing { subscriber, message, kept } = &mut *subscribing;
        if kept.is_none() {
            *kept = subscriber.receive(message, at(deadline))?;
        }
        let Some(lost) = *kept else { return Ok(came(None::<()>, |()| {})) };
        length.put(message.len());
        missed.put(lost);
        if message.len() > size {
            return Err(Failure::too_long(message.len(), size));
        }
        // SAFETY: `size` bytes are valid for writes (contract), and
        // the message is not longer; it is private.
        unsafe { to.cast::<u8>().copy_from(message.as_ptr(), message.len()) };
        *kept = None;
        Ok(came(Some(()), |()| {}))
    })
}

/// A file for poll(), epoll and event loops. It is readable when there is something to receive,
/// after doorbell_subscriber_listen() said that there was nothing. It belongs to the handle: never
/// read, write or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_subscriber_fd(
    subscriber: *const doorbell_subscriber,
    fd: *mut i32,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(fd, "fd", || Ok(lock(&lent(subscriber, "subscriber")?.0)?.subscriber.fd()?)) }
}

/// Before going back to the event loop: is there something to receive after all? If not, the file
/// is unreadable until there is. A message that DOORBELL_TOO_LONG left behind is something, but
/// makes no file readable: receive it first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_subscriber_listen(
    subscriber: *const doorbell_subscriber,
    something: *mut bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(something, "something", || {
            let mut subscribing = lock(&lent(subscriber, "subscriber")?.0)?;
            Ok(subscribing.subscriber.listen()? || subscribing.kept.is_some())
        })
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels: messages of bytes from one sender to one receiver.

use crate::bell::at;
use crate::error::{Failure, came, doorbell_status, guard, guard_all};
use crate::held::Held;
use crate::lock::{Locked, lock};
use crate::pointer::{Out, bytes, free, guard_into, guard_new, guard_or, lent};
use crate::rendezvous::{doorbell_connection, doorbell_segment};
use doorbell::Deadline;
use doorbell::channel::{Message, Receiver, SendError, Sender, Slot};
use doorbell::peer::Trust;
use doorbell::select::Selectable;
use doorbell::wait::Adaptive;
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::sync::Mutex;

/// One of several messages, where it lies.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_bytes {
    /// Where its first byte is.
    pub data: *const c_void,
    /// How many there are.
    pub length: usize,
}

/// The sending end of a lane. One thread at a time: a second is refused with DOORBELL_IN_USE.
#[derive(Debug)]
pub struct doorbell_sender(Mutex<Box<dyn Deliver>>);

/// The receiving end of a lane. One thread at a time: a second is refused with DOORBELL_IN_USE.
#[derive(Debug)]
pub struct doorbell_receiver(pub(crate) Mutex<Box<dyn Receive>>);

impl doorbell_sender {
    pub(crate) fn of<T: Trust>(sender: Sender<T>) -> Self {
        Self(Mutex::new(Box::new(Sending(Held::of(sender)))))
    }
}

impl doorbell_receiver {
    pub(crate) fn of<T: Trust>(receiver: Receiver<T>) -> Self {
        Self(Mutex::new(Box::new(Receiving { held: Held::of(receiver), holds_batch: false })))
    }
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<doorbell_sender>();
    shared_by_threads::<doorbell_receiver>();
};

/// What C does with a sender, whomever it trusts.
trait Deliver: Send + std::fmt::Debug {
    fn send(&mut self, message: &[u8], deadline: Option<Deadline>) -> Result<bool, Failure>;
    fn push(&mut self, message: &[u8]) -> Result<bool, Failure>;
    fn ring(&mut self) -> Result<(), Failure>;
    fn reserve(&mut self, most: usize, deadline: Option<Deadline>) -> Result<Option<*mut u8>, Failure>;
    fn commit(&mut self, length: usize) -> Result<(), Failure>;
    fn abandon(&mut self) -> Result<(), Failure>;
    fn longest(&mut self) -> u64;
    fn fd(&mut self) -> Result<i32, Failure>;
    fn listen(&mut self, length: usize) -> Result<bool, Failure>;
    fn set_interruptible(&mut self, interruptible: bool) -> Result<(), Failure>;
}

/// What C does with a receiver, whomever it trusts.
pub(crate) trait Receive: Send + std::fmt::Debug {
    fn receive(&mut self, deadline: Option<Deadline>) -> Result<Option<(*const u8, usize)>, Failure>;
    fn receive_batch(
        &mut self,
        deadline: Option<Deadline>,
        put: &mut dyn FnMut(doorbell_bytes) -> bool,
    ) -> Result<bool, Failure>;
    fn wait_for_bytes(&mut self, bytes: u64, deadline: Deadline) -> Result<bool, Failure>;
    fn copy(&mut self, to: &mut [u8]) -> usize;
    fn release(&mut self) -> Result<(), Failure>;
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure>;
    fn fd(&mut self) -> Result<i32, Failure>;
    fn listen(&mut self) -> Result<bool, Failure>;
    fn set_interruptible(&mut self, interruptible: bool) -> Result<(), Failure>;
}

/// A sender and the slot that was reserved in it.
#[derive(Debug)]
struct Sending<T: Trust>(Held<Sender<T>, Slot<'static, T, Adaptive>>);

/// A receiver and the message that was received from it. While a batch is held, nobody touches the
/// receiver.
#[derive(Debug)]
struct Receiving<T: Trust> {
    held: Held<Receiver<T>, Message<'static, T>>,
    /// Are messages of a batch held?
    holds_batch: bool,
}

impl<T: Trust> Sending<T> {
    fn free(&mut self) -> Result<&'static mut Sender<T>, Failure> {
        self.0.free().ok_or_else(|| {
            Failure::invalid(
                "a reserved message is still to be committed or abandoned; do that before the next",
            )
        })
    }
}

/// Why an end whose message C still has is not used.
pub(crate) fn still_held() -> Failure {
    Failure::invalid("a message is still held; release it first")
}

pub(crate) fn unless_full<T>(result: Result<T, SendError>) -> Result<Option<T>, Failure> {
    match result {
        Ok(it) => Ok(Some(it)),
        Err(SendError::Full | SendError::TimedOut | SendError::NoReceiver) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl<T: Trust> Deliver for Sending<T> {
    fn send(&mut self, message: &[u8], deadline: Option<Deadline>) -> Result<bool, Failure> {
        Ok(unless_full(self.free()?.send_deadline(message, deadline))?.is_some())
    }

    fn push(&mut self, message: &[u8]) -> Result<bool, Failure> {
        Ok(unless_full(self.free()?.push(message))?.is_some())
    }

    fn ring(&mut self) -> Result<(), Failure> {
        self.free()?.ring();
        Ok(())
    }

    fn reserve(&mut self, most: usize, deadline: Option<Deadline>) -> Result<Option<*mut u8>, Failure> {
        let sender = self.free()?;
        let slot = match deadline {
            Some(deadline) => sender.reserve_deadline(most, deadline),
            None => sender.reserve(most),
        };
        let Some(mut slot) = unless_full(slot)? else { return Ok(None) };
        let at = slot.as_mut_ptr();
        self.0.taken = Some(slot);
        Ok(Some(at))
    }

    fn commit(&mut self, length: usize) -> Result<(), Failure> {
        let slot = self
            .0
            .taken
            .take()
            .ok_or_else(|| Failure::invalid("no message is reserved; reserve it first"))?;
        let size = slot.size();
        if length > size {
            self.0.taken = Some(slot);
            return Err(Failure::invalid(format!("{length} bytes were not reserved, but {size}")));
        }
        Ok(slot.commit_first(length)?)
    }

    fn abandon(&mut self) -> Result<(), Failure> {
        self.0.taken = None;
        Ok(())
    }

    fn longest(&mut self) -> u64 {
        // SAFETY: it never changes.
        unsafe { self.0.constant() }.longest()
    }

    fn fd(&mut self) -> Result<i32, Failure> {
        Ok(self.free()?.file()?.as_raw_fd())
    }

    fn listen(&mut self, length: usize) -> Result<bool, Failure> {
        Ok(self.free()?.listen(length)?)
    }

    fn set_interruptible(&mut self, interruptible: bool) -> Result<(), Failure> {
        self.free()?.set_interruptible(interruptible);
        Ok(())
    }
}

impl<T: Trust> Receiving<T> {
    fn free(&mut self) -> Result<&'static mut Receiver<T>, Failure> {
        if self.holds_batch {
            return Err(still_held());
        }
        self.held.free().ok_or_else(still_held)
    }
}

impl<T: Trust> Receive for Receiving<T> {
    fn receive(&mut self, deadline: Option<Deadline>) -> Result<Option<(*const u8, usize)>, Failure> {
        if self.held.taken.is_none() {
            self.held.taken = self.free()?.recv_deadline(deadline)?;
        }
        Ok(self.held.taken.as_ref().map(|message| (message.as_ptr(), message.len())))
    }

    fn receive_batch(
        &mut self,
        deadline: Option<Deadline>,
        put: &mut dyn FnMut(doorbell_bytes) -> bool,
    ) -> Result<bool, Failure> {
        for message in self.free()?.recv_batch_deadline(deadline)? {
            self.holds_batch = true;
            if !put(doorbell_bytes { data: message.as_ptr().cast(), length: message.len() }) {
                break;
            }
        }
        Ok(self.holds_batch)
    }

    fn wait_for_bytes(&mut self, bytes: u64, deadline: Deadline) -> Result<bool, Failure> {
        Ok(self.free()?.wait_for_bytes(bytes, deadline)?)
    }

    fn copy(&mut self, to: &mut [u8]) -> usize {
        self.held.taken.as_ref().map_or(0, |message| message.copy_to(to))
    }

    fn release(&mut self) -> Result<(), Failure> {
        self.holds_batch = false;
        if let Some(message) = self.held.taken.take() {
            message.release();
        }
        Ok(())
    }

    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        Ok(self.free()?)
    }

    fn fd(&mut self) -> Result<i32, Failure> {
        Ok(self.free()?.file()?.as_raw_fd())
    }

    fn listen(&mut self) -> Result<bool, Failure> {
        Ok(self.held.taken.is_some() || self.holds_batch || self.free()?.listen()?)
    }

    fn set_interruptible(&mut self, interruptible: bool) -> Result<(), Failure> {
        self.free()?.set_interruptible(interruptible);
        Ok(())
    }
}

impl Locked for Box<dyn Receive> {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        (**self).selectable()
    }
}

/// Takes the sending end of lane number `lane` of the segment shared with the peer, who need not be
/// trusted. The connection may be freed: the end keeps the connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_sender(
    connection: *const doorbell_connection,
    lane: u32,
    sender: *mut *mut doorbell_sender,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(sender, "sender", || {
            Ok(doorbell_sender::of(Sender::attach(lent(connection, "connection")?.connection(), lane)?))
        })
    }
}

/// Takes the sending end of lane number `lane` of a segment whose other users are all trusted:
/// threads of this process, forked children.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_sender(
    segment: *const doorbell_segment,
    lane: u32,
    sender: *mut *mut doorbell_sender,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(sender, "sender", || {
            Ok(doorbell_sender::of(Sender::at(lent(segment, "segment")?.segment(), lane)?))
        })
    }
}

/// Leaves the lane. The receiver gets all that was sent, and is then told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_free(sender: *mut doorbell_sender) {
    // SAFETY: the header's contract.
    unsafe { free(sender) };
}

/// The longest message the lane takes; 0 for NULL or while another thread uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_longest(sender: *const doorbell_sender) -> u64 {
    // SAFETY: the header's contract.
    guard_or(0, || Ok(lock(&unsafe { lent(sender, "sender") }?.0)?.longest()))
}

/// Sends `length` bytes as one message. Waits while there is no room, until `deadline`: then
/// DOORBELL_TIMED_OUT. 0 does not wait, DOORBELL_FOREVER waits for ever. DOORBELL_CLOSED if the
/// receiver has left, DOORBELL_PEER_GONE if its process has; another may come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_send(
    sender: *const doorbell_sender,
    message: *const c_void,
    length: usize,
    deadline: u64,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (sender, message) = unsafe { (lent(sender, "sender")?, bytes(message.cast(), length)?) };
        let sent = lock(&sender.0)?.send(message, at(deadline))?;
        Ok(came(sent.then_some(()), |()| {}))
    })
}

/// Adds `length` bytes as one message to a batch: a receiver that is awake finds it at once, and
/// one that sleeps is woken by doorbell_sender_ring(), once for all. DOORBELL_TIMED_OUT if there is
/// no room: ring, and wait in doorbell_sender_send().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_push(
    sender: *const doorbell_sender,
    message: *const c_void,
    length: usize,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (sender, message) = unsafe { (lent(sender, "sender")?, bytes(message.cast(), length)?) };
        let pushed = lock(&sender.0)?.push(message)?;
        Ok(came(pushed.then_some(()), |()| {}))
    })
}

/// Wakes the receiver for what was pushed, if it sleeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_ring(sender: *const doorbell_sender) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(sender, "sender") }?.0)?.ring())
}

/// Makes room for a message of up to `most` bytes and says where; write it there and call
/// doorbell_sender_commit() or doorbell_sender_abandon(). Waits as doorbell_sender_send() does. A
/// receiver that is not trusted can write there too: do not read back what was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_reserve(
    sender: *const doorbell_sender,
    most: usize,
    deadline: u64,
    message: *mut *mut c_void,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (sender, out) = unsafe { (lent(sender, "sender")?, Out::new(message, "message")?) };
        let place = lock(&sender.0)?.reserve(most, at(deadline))?;
        Ok(came(place, |place| out.put(place.cast())))
    })
}

/// Sends the first `length` bytes of the reserved message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_commit(
    sender: *const doorbell_sender,
    length: usize,
) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(sender, "sender") }?.0)?.commit(length))
}

/// Gives the reserved room back; the receiver sees nothing of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_abandon(sender: *const doorbell_sender) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(sender, "sender") }?.0)?.abandon())
}

/// A file for poll(), epoll and event loops. It is readable when there is room, or the receiver has
/// gone, after doorbell_sender_listen() said that there was none. It belongs to the handle: never
/// read, write or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_fd(sender: *const doorbell_sender, fd: *mut i32) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(fd, "fd", || lock(&lent(sender, "sender")?.0)?.fd()) }
}

/// Before going back to the event loop: is there room for a message of
/// `length` bytes after all, or something to be told of the receiver? If
/// not, the file is unreadable until there is. Rings for what was pushed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_listen(
    sender: *const doorbell_sender,
    length: usize,
    something: *mut bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(something, "something", || lock(&lent(sender, "sender")?.0)?.listen(length)) }
}

/// As doorbell_bell_set_interruptible(), for waits for room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_sender_set_interruptible(
    sender: *const doorbell_sender,
    interruptible: bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(sender, "sender") }?.0)?.set_interruptible(interruptible))
}

/// Takes the receiving end of lane number `lane` of the segment shared with the peer, who need not
/// be trusted. The connection may be freed: the end keeps the connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_receiver(
    connection: *const doorbell_connection,
    lane: u32,
    receiver: *mut *mut doorbell_receiver,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(receiver, "receiver", || {
            Ok(doorbell_receiver::of(Receiver::attach(lent(connection, "connection")?.connection(), lane)?))
        })
    }
}

/// Takes the receiving end of lane number `lane` of a segment whose other users are all trusted:
/// threads of this process, forked children.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_receiver(
    segment: *const doorbell_segment,
    lane: u32,
    receiver: *mut *mut doorbell_receiver,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(receiver, "receiver", || {
            Ok(doorbell_receiver::of(Receiver::at(lent(segment, "segment")?.segment(), lane)?))
        })
    }
}

/// Leaves the lane. What was not received stays for the next receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_free(receiver: *mut doorbell_receiver) {
    // SAFETY: the header's contract.
    unsafe { free(receiver) };
}

/// Receives the next message where it lies: `message` and `length` say where, until
/// doorbell_receiver_release(); until then the same message is received again. Waits while there is
/// none, until `deadline`: then DOORBELL_TIMED_OUT. 0 does not wait, DOORBELL_FOREVER waits for
/// ever. DOORBELL_CLOSED or DOORBELL_PEER_GONE when all that was sent has been received and the
/// sender has left, or has died or hung up without leaving; another may come.
///
/// A sender that is not trusted may be writing there at this moment: copy first what you check
/// (doorbell_receiver_copy() does).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_recv(
    receiver: *const doorbell_receiver,
    deadline: u64,
    message: *mut *const c_void,
    length: *mut usize,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (receiver, place, length) = unsafe {
            (lent(receiver, "receiver")?, Out::new(message, "message")?, Out::new(length, "length")?)
        };
        let found = lock(&receiver.0)?.receive(at(deadline))?;
        Ok(came(found, |(at, long)| {
            place.put(at.cast());
            length.put(long);
        }))
    })
}

/// Receives several messages, each where it lies: as many as are there, and `most` at most, of
/// which `count` were written to `messages`. All are held until doorbell_receiver_release(), and
/// nothing else is received before. Waits for the first as doorbell_receiver_recv() does; the
/// sender gets their room when the receiver is used the next time. One who is not trusted may be
/// writing there: copy first what you check.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_recv_batch(
    receiver: *const doorbell_receiver,
    deadline: u64,
    messages: *mut doorbell_bytes,
    most: usize,
    count: *mut usize,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (receiver, out) = unsafe { (lent(receiver, "receiver")?, Out::new(count, "count")?) };
        if messages.is_null() {
            return Err(Failure::null("messages"));
        }
        if most == 0 {
            return Err(Failure::invalid(
                "a batch of at most 0 messages holds none; say how many there is room for",
            ));
        }
        let mut got = 0;
        let there = lock(&receiver.0)?.receive_batch(at(deadline), &mut |message| {
            // SAFETY: `most` are valid for writes (contract), and
            // this is not called again once so many were written.
            unsafe { messages.add(got).write(message) };
            got += 1;
            got < most
        })?;
        Ok(came(there.then_some(got), |got| out.put(got)))
    })
}

/// Lets go of the message that was received, or of all that were, so
/// that the sender can write there again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_release(receiver: *const doorbell_receiver) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(receiver, "receiver") }?.0)?.release())
}

/// Copies the next message to `to`, where `size` bytes are, and lets go of it. Waits as
/// doorbell_receiver_recv() does. `length` becomes the message's length. If that is more than
/// `size`, nothing is copied and the message stays: DOORBELL_TOO_LONG, and `length` is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_copy(
    receiver: *const doorbell_receiver,
    deadline: u64,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (receiver, out) = unsafe { (lent(receiver, "receiver")?, Out::new(length, "length")?) };
        if to.is_null() && size > 0 {
            return Err(Failure::null("to"));
        }
        let mut receiver = lock(&receiver.0)?;
        let Some((_, length)) = receiver.receive(at(deadline))? else {
            return Ok(came(None::<()>, |()| {}));
        };
        out.put(length);
        // SAFETY: the header's contract.
        unsafe { copy(to, size, length, |to| receiver.copy(to)) }?;
        receiver.release()?;
        Ok(came(Some(()), |()| {}))
    })
}

/// Has `copy` copy the `length` bytes of a message to `to`, if they fit the `size` bytes there.
///
/// # Safety
/// So many bytes are valid for writes.
pub(crate) unsafe fn copy(
    to: *mut c_void,
    size: usize,
    length: usize,
    copy: impl FnOnce(&mut [u8]) -> usize,
) -> Result<(), Failure> {
    if length > size {
        return Err(Failure::too_long(length, size));
    }
    if length > 0 {
        // SAFETY: by contract, and `length` is not more; zeroed, so initialised.
        let to = unsafe {
            to.write_bytes(0, length);
            std::slice::from_raw_parts_mut(to.cast::<u8>(), length)
        };
        copy(to);
    }
    Ok(())
}

/// A file for poll(), epoll and event loops. It is readable when there is something to receive,
/// after doorbell_receiver_listen() said that there was nothing. It belongs to the handle: never
/// read, write or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_fd(
    receiver: *const doorbell_receiver,
    fd: *mut i32,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(fd, "fd", || lock(&lent(receiver, "receiver")?.0)?.fd()) }
}

/// Before going back to the event loop: is there something to receive after all? If not, the file
/// is unreadable until there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_listen(
    receiver: *const doorbell_receiver,
    something: *mut bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(something, "something", || lock(&lent(receiver, "receiver")?.0)?.listen()) }
}

/// Waits until at least `bytes` bytes of records are there (a message's length, rounded up to
/// eight, and eight more), at most a quarter of the ring. What the sender passes by at the end of
/// the ring counts: there may be fewer messages than that, or none. The sender makes no system call
/// before. DOORBELL_TIMED_OUT if they are not there by `deadline`, or the sender has gone: what is
/// there is received as usual.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_wait_for_bytes(
    receiver: *const doorbell_receiver,
    bytes: u64,
    deadline: u64,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let receiver = unsafe { lent(receiver, "receiver") }?;
        let forever = || Failure::invalid("a wait for bytes needs a deadline: no more may ever come");
        let there = lock(&receiver.0)?.wait_for_bytes(bytes, at(deadline).ok_or_else(forever)?)?;
        Ok(came(there.then_some(()), |()| {}))
    })
}

/// As doorbell_bell_set_interruptible(), for waits for messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_receiver_set_interruptible(
    receiver: *const doorbell_receiver,
    interruptible: bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(receiver, "receiver") }?.0)?.set_interruptible(interruptible))
}

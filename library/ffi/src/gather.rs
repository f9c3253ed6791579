// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many senders, one receiver.

use crate::bell::at;
use crate::channel::{copy, still_held};
use crate::error::{Failure, came, doorbell_status, guard, guard_all};
use crate::held::Held;
use crate::lock::{Locked, lock};
use crate::pointer::{Out, free, guard_into, guard_new, lent};
use crate::rendezvous::{doorbell_connection, doorbell_segment};
use doorbell::Deadline;
use doorbell::channel::{Gather, GatherError, Message};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::rendezvous::{Connection, Segment};
use doorbell::select::Selectable;
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::sync::Mutex;

/// The receiving ends of many lanes. Lanes are asked in turn; messages of one sender come in order.
/// One thread at a time: a second is refused with DOORBELL_IN_USE.
#[derive(Debug)]
pub struct doorbell_gather(pub(crate) Mutex<Box<dyn Collect>>);

/// What C is told where no lane is concerned: SIZE_MAX.
const NO_LANE: usize = usize::MAX;

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<doorbell_gather>();
};

/// A message where it lies: its lane, its place, its length.
type Place = (usize, *const u8, usize);

/// What C does with a gather, whomever it trusts.
pub(crate) trait Collect: Send + std::fmt::Debug {
    fn add(&mut self, memory: Memory<'_>, lane: u32) -> Result<usize, Failure>;
    fn remove(&mut self, number: usize) -> Result<bool, Failure>;
    fn is_empty(&self) -> bool;
    fn is_interruptible(&self) -> bool;
    fn receive(&mut self, deadline: Option<Deadline>) -> Result<Option<Place>, (usize, Failure)>;
    fn copy(&mut self, to: &mut [u8]) -> usize;
    fn release(&mut self) -> Result<(), Failure>;
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure>;
    fn fds(&mut self) -> Result<Vec<i32>, Failure>;
    fn listen(&mut self) -> Result<bool, Failure>;
    fn set_interruptible(&mut self, interruptible: bool) -> Result<(), Failure>;
}

/// A gather and the message that was received from it.
#[derive(Debug)]
struct Gathering<T: Trust> {
    held: Held<Gather<T>, (usize, Message<'static, T>)>,
    lanes: usize,
    interruptible: bool,
}

impl<T: Trust> Gathering<T> {
    fn new(interruptible: bool) -> Self {
        Self { held: Held::of(Gather::default()), lanes: 0, interruptible }
    }

    fn free(&mut self) -> Result<&'static mut Gather<T>, Failure> {
        self.held.free().ok_or_else(still_held)
    }
}

/// Where a lane lies.
#[derive(Clone, Copy)]
pub(crate) enum Memory<'a> {
    Connection(&'a Connection),
    Segment(&'a Segment),
}

/// Which lanes a gather takes.
trait Kind: Trust + Sized {
    fn add(gather: &mut Gather<Self>, memory: Memory<'_>, lane: u32) -> Result<usize, Failure>;
}

fn mixed() -> Failure {
    Failure::invalid(
        "a gather takes lanes of segments whose users are all trusted, or of connections, not \
         both; make one for each",
    )
}

impl Kind for Untrusted {
    fn add(gather: &mut Gather<Self>, memory: Memory<'_>, lane: u32) -> Result<usize, Failure> {
        let Memory::Connection(connection) = memory else { return Err(mixed()) };
        Ok(gather.add(connection, lane)?)
    }
}

impl Kind for Trusted {
    fn add(gather: &mut Gather<Self>, memory: Memory<'_>, lane: u32) -> Result<usize, Failure> {
        let Memory::Segment(segment) = memory else { return Err(mixed()) };
        Ok(gather.add_at(segment, lane)?)
    }
}

impl<T: Kind> Collect for Gathering<T> {
    fn add(&mut self, memory: Memory<'_>, lane: u32) -> Result<usize, Failure> {
        let gather = self.free()?;
        let number = T::add(gather, memory, lane)?;
        self.lanes += 1;
        gather.set_interruptible(self.interruptible);
        Ok(number)
    }

    fn remove(&mut self, number: usize) -> Result<bool, Failure> {
        let removed = self.free()?.remove(number);
        self.lanes -= usize::from(removed);
        Ok(removed)
    }

    fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    fn is_interruptible(&self) -> bool {
        self.interruptible
    }

    fn receive(&mut self, deadline: Option<Deadline>) -> Result<Option<Place>, (usize, Failure)> {
        if self.held.taken.is_none() {
            let gather = self.free().map_err(|failure| (NO_LANE, failure))?;
            self.held.taken = gather.recv_deadline(deadline).map_err(|error| {
                let GatherError { lane, error } = error;
                (lane.unwrap_or(NO_LANE), error.into())
            })?;
        }
        Ok(self.held.taken.as_ref().map(|(lane, message)| (*lane, message.as_ptr(), message.len())))
    }

    fn copy(&mut self, to: &mut [u8]) -> usize {
        self.held.taken.as_ref().map_or(0, |(_, message)| message.copy_to(to))
    }

    fn release(&mut self) -> Result<(), Failure> {
        if let Some((_, message)) = self.held.taken.take() {
            message.release();
        }
        Ok(())
    }

    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        Ok(self.free()?)
    }

    fn fds(&mut self) -> Result<Vec<i32>, Failure> {
        Ok(self.free()?.files()?.iter().map(AsRawFd::as_raw_fd).collect())
    }

    fn listen(&mut self) -> Result<bool, Failure> {
        Ok(self.held.taken.is_some() || self.free()?.listen()?)
    }

    fn set_interruptible(&mut self, interruptible: bool) -> Result<(), Failure> {
        self.interruptible = interruptible;
        self.free()?.set_interruptible(interruptible);
        Ok(())
    }
}

impl Locked for Box<dyn Collect> {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        (**self).selectable()
    }
}

/// Makes a gather without lanes. It takes lanes of connections, or
/// lanes of segments, but not both at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_new(gather: *mut *mut doorbell_gather) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(gather, "gather", || {
            Ok(doorbell_gather(Mutex::new(Box::new(Gathering::<Untrusted>::new(false)))))
        })
    }
}

/// Adds lane number `lane` of the segment shared with the peer, who need not be trusted if the
/// segment is shared with nobody else. `number` becomes the lane's number here. The connection may
/// be freed: the connection is kept until the lane is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_add(
    gather: *const doorbell_gather,
    connection: *const doorbell_connection,
    lane: u32,
    number: *mut usize,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(number, "number", || {
            let connection = lent(connection, "connection")?.connection();
            add::<Untrusted>(lent(gather, "gather")?, Memory::Connection(connection), lane)
        })
    }
}

/// As doorbell_gather_add(), of a segment whose other users are all trusted: threads of this
/// process, forked children.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_add_segment(
    gather: *const doorbell_gather,
    segment: *const doorbell_segment,
    lane: u32,
    number: *mut usize,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(number, "number", || {
            let segment = lent(segment, "segment")?.segment();
            add::<Trusted>(lent(gather, "gather")?, Memory::Segment(segment), lane)
        })
    }
}

/// Without lanes a gather has nobody to trust or not to trust: the first that is added decides.
fn add<T: Kind>(gather: &doorbell_gather, memory: Memory<'_>, lane: u32) -> Result<usize, Failure> {
    let mut gather = lock(&gather.0)?;
    if gather.is_empty() {
        let mut fresh = Gathering::<T>::new(gather.is_interruptible());
        let number = fresh.add(memory, lane)?;
        *gather = Box::new(fresh);
        return Ok(number);
    }
    gather.add(memory, lane)
}

/// Leaves the lane that has this number here, which may be given to the next that is added.
/// `removed` says whether there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_remove(
    gather: *const doorbell_gather,
    number: usize,
    removed: *mut bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(removed, "removed", || lock(&lent(gather, "gather")?.0)?.remove(number)) }
}

/// Leaves all lanes. What was not received stays for the next receivers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_free(gather: *mut doorbell_gather) {
    // SAFETY: the header's contract.
    unsafe { free(gather) };
}

/// Receives the next message of any lane where it lies, as doorbell_receiver_recv() does; `lane`
/// becomes the lane's number. When a sender dies or lies, its end is told once, with the lane's
/// number in `lane`, and the other lanes go on. DOORBELL_CLOSED when no sender is left at any lane.
/// `lane` is written with every result: SIZE_MAX if it concerns no lane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_recv(
    gather: *const doorbell_gather,
    deadline: u64,
    lane: *mut usize,
    message: *mut *const c_void,
    length: *mut usize,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (lane, gather, place, length) = unsafe {
            (
                Out::new(lane, "lane")?.put_first(NO_LANE),
                lent(gather, "gather")?,
                Out::new(message, "message")?,
                Out::new(length, "length")?,
            )
        };
        match lock(&gather.0)?.receive(at(deadline)) {
            Ok(found) => Ok(came(found, |(number, at, long)| {
                lane.put(number);
                place.put(at.cast());
                length.put(long);
            })),
            Err((number, failure)) => {
                lane.put(number);
                Err(failure)
            }
        }
    })
}

/// Copies the next message of any lane to `to`, where `size` bytes are, and lets go of it:
/// doorbell_gather_recv() and doorbell_receiver_copy() in one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_copy(
    gather: *const doorbell_gather,
    deadline: u64,
    lane: *mut usize,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (lane, gather, out) = unsafe {
            (Out::new(lane, "lane")?.put_first(NO_LANE), lent(gather, "gather")?, Out::new(length, "length")?)
        };
        if to.is_null() && size > 0 {
            return Err(Failure::null("to"));
        }
        let mut gather = lock(&gather.0)?;
        let length = match gather.receive(at(deadline)) {
            Ok(Some((number, _, length))) => {
                lane.put(number);
                length
            }
            Ok(None) => return Ok(came(None::<()>, |()| {})),
            Err((number, failure)) => {
                lane.put(number);
                return Err(failure);
            }
        };
        out.put(length);
        // SAFETY: the header's contract.
        unsafe { copy(to, size, length, |to| gather.copy(to)) }?;
        gather.release()?;
        Ok(came(Some(()), |()| {}))
    })
}

/// Lets go of the message that was received, so that its sender can write there again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_release(gather: *const doorbell_gather) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(gather, "gather") }?.0)?.release())
}

/// The files of which one is readable when there is something to receive,
/// after doorbell_gather_listen() said that there was nothing: up to
/// `room` of them are written to `fds`, and how many there are to `count`.
/// Adding and removing lanes changes them. See doorbell_receiver_fd().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_fds(
    gather: *const doorbell_gather,
    fds: *mut i32,
    room: usize,
    count: *mut usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let (gather, out) = unsafe { (lent(gather, "gather")?, Out::new(count, "count")?) };
        if fds.is_null() && room > 0 {
            return Err(Failure::null("fds"));
        }
        let files = lock(&gather.0)?.fds()?;
        for (place, file) in files.iter().enumerate().take(room) {
            // SAFETY: `room` numbers are valid for writes (contract).
            unsafe { fds.add(place).write(*file) };
        }
        out.put(files.len());
        Ok(())
    })
}

/// Before going back to the event loop: is there something to receive after all? If not, the files
/// are unreadable until there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_listen(
    gather: *const doorbell_gather,
    something: *mut bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_into(something, "something", || lock(&lent(gather, "gather")?.0)?.listen()) }
}

/// As doorbell_bell_set_interruptible(), for waits for messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_gather_set_interruptible(
    gather: *const doorbell_gather,
    interruptible: bool,
) -> doorbell_status {
    // SAFETY: the header's contract.
    guard_all(|| lock(&unsafe { lent(gather, "gather") }?.0)?.set_interruptible(interruptible))
}

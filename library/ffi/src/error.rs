// SPDX-License-Identifier: MIT OR Apache-2.0
//! What C is told of failures.

use doorbell::channel::{AttachError, RecvError, SendError};
use doorbell::mapping::MapError;
use doorbell::peer::PeerId;
use doorbell::rendezvous::{Reason, RendezvousError};
use doorbell::service::ServiceError;
use doorbell::{PeerViolation, WaitError};
use rustix::io::Errno;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended. Later releases may add values; none changes its number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum doorbell_status {
    /// It did what it is for.
    DOORBELL_OK = 0,
    /// The deadline came first, or there was nothing and the call never waits. Not an error:
    /// doorbell_last_error() is not changed.
    DOORBELL_TIMED_OUT = 1,
    /// A signal handler ran in the waiting thread; see doorbell_bell_set_interruptible().
    DOORBELL_INTERRUPTED = 2,
    /// The kernel reported that a peer closed its end or died. What
    /// it had rung before was delivered first.
    DOORBELL_PEER_GONE = 3,
    /// All eventfd waiter slots of the bell are taken.
    DOORBELL_NO_WAITER_SLOT = 4,
    /// The kernel cannot do this; choose another way of waiting.
    DOORBELL_UNSUPPORTED = 5,
    /// A system call failed; `error_number` is its errno.
    DOORBELL_SYSTEM = 6,
    /// The peer broke the protocol: it is faulty or hostile. Free the connection.
    DOORBELL_VIOLATION = 7,
    /// The other side of a rendezvous hung up or said nothing in time.
    DOORBELL_NO_ANSWER = 8,
    /// The other side of a rendezvous cannot use what was offered.
    DOORBELL_REFUSED = 9,
    /// More bells or eventfds than can be handed over, or bells than can be waited for at once.
    DOORBELL_TOO_MANY = 10,
    /// The path or name has a living owner.
    DOORBELL_OWNED = 11,
    /// Nobody listens at the path, or nobody owns the name.
    DOORBELL_NO_OWNER = 12,
    /// The process was not started by one that offers a segment to inherit.
    DOORBELL_NOTHING_INHERITED = 13,
    /// The memory is of another layout version, or larger than can be laid out.
    DOORBELL_LAYOUT = 14,
    /// A NULL, an unknown number, or things that do not go together. The message names it.
    DOORBELL_INVALID_ARGUMENT = 15,
    /// Another thread is waiting with this handle; give each thread a clone.
    DOORBELL_IN_USE = 16,
    /// A mistake in this library. What the call was to do may be half done; free the handle.
    DOORBELL_PANICKED = 17,
    /// The other end of the lane was left. All that was sent has been received; another may attach.
    DOORBELL_CLOSED = 18,
    /// The message is longer than the lane takes, or than the memory it is to be copied to.
    DOORBELL_TOO_LONG = 19,
    /// Somebody is at this end of the lane.
    DOORBELL_TAKEN = 20,
    /// The segment has no such lane, or none at all, or one that shares its receiver with others
    /// and has no receiving end of its own.
    DOORBELL_NO_LANE = 21,
    /// An end that lends memory out as it lies there, on a segment that somebody shares who is not
    /// trusted: take the end at the connection.
    DOORBELL_UNTRUSTED = 22,
    /// The peer is not trusted, and memory of the segment is lent out by an end that was taken at
    /// the segment: meet it on a segment of its own.
    DOORBELL_LENT = 23,
    /// The segment was joined, and this process has hung up on its
    /// maker since, or was forked from the one that joined.
    DOORBELL_HUNG_UP = 24,
    /// The peer offers more memory than is taken from one who is not
    /// trusted; or there is no memory for a message.
    DOORBELL_TOO_LARGE = 25,
    /// Memory in huge pages is not shared with peers who are not trusted: they can take it away.
    DOORBELL_HUGE_PAGES = 26,
    /// This subscriber of a broadcast was too slow, and the publisher does not wait for it.
    DOORBELL_DROPPED = 27,
    /// The other side is a process of a user with whom this side does not share memory.
    DOORBELL_OTHER_USER = 28,
    /// The end belongs to the process that this one was forked from:
    /// take a child's ends in the child.
    DOORBELL_FORKED = 29,
}

use doorbell_status::{
    DOORBELL_CLOSED, DOORBELL_DROPPED, DOORBELL_FORKED, DOORBELL_HUGE_PAGES, DOORBELL_HUNG_UP,
    DOORBELL_IN_USE, DOORBELL_INTERRUPTED, DOORBELL_INVALID_ARGUMENT, DOORBELL_LAYOUT, DOORBELL_LENT,
    DOORBELL_NO_ANSWER, DOORBELL_NO_LANE, DOORBELL_NO_OWNER, DOORBELL_NO_WAITER_SLOT,
    DOORBELL_NOTHING_INHERITED, DOORBELL_OK, DOORBELL_OTHER_USER, DOORBELL_OWNED, DOORBELL_PANICKED,
    DOORBELL_PEER_GONE, DOORBELL_REFUSED, DOORBELL_SYSTEM, DOORBELL_TAKEN, DOORBELL_TIMED_OUT,
    DOORBELL_TOO_LARGE, DOORBELL_TOO_LONG, DOORBELL_TOO_MANY, DOORBELL_UNSUPPORTED, DOORBELL_UNTRUSTED,
    DOORBELL_VIOLATION,
};

/// What the last call of this thread that failed reports.
#[repr(C)]
#[derive(Debug)]
pub struct doorbell_error {
    /// What the call returned.
    pub status: doorbell_status,
    /// The errno behind it; 0 if there is none.
    pub error_number: i32,
    /// With DOORBELL_PEER_GONE: which peer, by its number in the order of rendezvous. Else 0.
    pub peer: u32,
    /// With DOORBELL_PEER_GONE: its process number, 0 if it has none here. Else 0.
    pub peer_process: u32,
    /// What happened, with which value, and what to do next. Never NULL.
    pub message: *const c_char,
}

/// What went wrong, on its way to C.
#[derive(Debug)]
pub(crate) struct Failure {
    status: doorbell_status,
    error_number: i32,
    peer: Option<PeerId>,
    message: String,
}

impl Failure {
    fn new(status: doorbell_status, error_number: i32, message: String) -> Self {
        Self { status, error_number, peer: None, message }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(DOORBELL_INVALID_ARGUMENT, 0, message.into())
    }

    pub(crate) fn null(what: &'static str) -> Self {
        Self::invalid(format!("{what} is NULL"))
    }

    pub(crate) fn in_use() -> Self {
        let message = "another thread is waiting with this handle; give each thread a clone";
        Self::new(DOORBELL_IN_USE, 0, message.into())
    }
}

impl Failure {
    pub(crate) fn too_long(length: usize, size: usize) -> Self {
        let message =
            format!("the message has {length} bytes, more than the {size} there is room for; give it more");
        Self::new(DOORBELL_TOO_LONG, 0, message)
    }

    fn gone(peer: PeerId, message: String) -> Self {
        Self { peer: Some(peer), ..Self::new(DOORBELL_PEER_GONE, 0, message) }
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        let status = match error {
            AttachError::Taken { .. } => DOORBELL_TAKEN,
            AttachError::Violation(_) => DOORBELL_VIOLATION,
            AttachError::Untrusted => DOORBELL_UNTRUSTED,
            AttachError::HungUp => DOORBELL_HUNG_UP,
            AttachError::TooManyBells { .. } => DOORBELL_TOO_MANY,
            _ => DOORBELL_NO_LANE,
        };
        Self::new(status, 0, error.to_string())
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let message = error.to_string();
        match error {
            SendError::Full | SendError::TimedOut | SendError::NoReceiver => {
                Self::new(DOORBELL_TIMED_OUT, 0, message)
            }
            SendError::TooLong { .. } => Self::new(DOORBELL_TOO_LONG, 0, message),
            SendError::Closed => Self::new(DOORBELL_CLOSED, 0, message),
            SendError::Forked => Self::new(DOORBELL_FORKED, 0, message),
            SendError::PeerGone(peer) => Self::gone(peer, message),
            SendError::Violation(_) => Self::new(DOORBELL_VIOLATION, 0, message),
            SendError::Wait(error) => error.into(),
            // The enum may grow; its message says what it is.
            _ => Self::new(DOORBELL_SYSTEM, 0, message),
        }
    }
}

impl From<RecvError> for Failure {
    fn from(error: RecvError) -> Self {
        let message = error.to_string();
        match error {
            RecvError::Closed => Self::new(DOORBELL_CLOSED, 0, message),
            RecvError::Forked => Self::new(DOORBELL_FORKED, 0, message),
            RecvError::PeerGone(peer) => Self::gone(peer, message),
            RecvError::Violation(_) => Self::new(DOORBELL_VIOLATION, 0, message),
            RecvError::NoMemory { .. } => Self::new(DOORBELL_TOO_LARGE, 0, message),
            RecvError::Dropped => Self::new(DOORBELL_DROPPED, 0, message),
            RecvError::Wait(error) => error.into(),
            // The enum may grow; its message says what it is.
            _ => Self::new(DOORBELL_SYSTEM, 0, message),
        }
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let message = error.to_string();
        match error {
            ServiceError::Rendezvous(error) => error.into(),
            ServiceError::Wait(error) => error.into(),
            // The enum may grow; its message says what it is.
            _ => Self::new(DOORBELL_SYSTEM, 0, message),
        }
    }
}

impl From<WaitError> for Failure {
    fn from(error: WaitError) -> Self {
        let (status, errno) = match error {
            WaitError::PeerGone(_) => (DOORBELL_PEER_GONE, 0),
            WaitError::Interrupted => (DOORBELL_INTERRUPTED, 0),
            WaitError::NoWaiterSlot { .. } => (DOORBELL_NO_WAITER_SLOT, 0),
            WaitError::HungUp => (DOORBELL_HUNG_UP, 0),
            WaitError::Forked => (DOORBELL_FORKED, 0),
            WaitError::TooManyBells { .. } => (DOORBELL_TOO_MANY, 0),
            WaitError::Unsupported { errno, .. } => (DOORBELL_UNSUPPORTED, errno.raw_os_error()),
            WaitError::Os { errno, .. } => (DOORBELL_SYSTEM, errno.raw_os_error()),
            // The enum may grow; its message says what it is.
            _ => (DOORBELL_SYSTEM, 0),
        };
        let mut failure = Self::new(status, errno, error.to_string());
        if let WaitError::PeerGone(peer) = error {
            failure.peer = Some(peer);
        }
        failure
    }
}

impl From<MapError> for Failure {
    fn from(error: MapError) -> Self {
        RendezvousError::from(error).into()
    }
}

impl From<PeerViolation> for Failure {
    fn from(violation: PeerViolation) -> Self {
        Self::new(DOORBELL_VIOLATION, 0, violation.to_string())
    }
}

impl From<RendezvousError> for Failure {
    fn from(error: RendezvousError) -> Self {
        let (status, errno) = match &error {
            RendezvousError::Os { errno, .. } | RendezvousError::Map(MapError::Os { errno, .. }) => {
                (DOORBELL_SYSTEM, errno.raw_os_error())
            }
            RendezvousError::Map(MapError::TooMuch { .. }) => (DOORBELL_TOO_LARGE, 0),
            RendezvousError::Map(MapError::HugePages) => (DOORBELL_HUGE_PAGES, 0),
            RendezvousError::Map(_)
            | RendezvousError::CannotLayOut { .. }
            | RendezvousError::NoRoomForLanes { .. } => (DOORBELL_LAYOUT, 0),
            RendezvousError::Lent => (DOORBELL_LENT, 0),
            RendezvousError::HungUp => (DOORBELL_HUNG_UP, 0),
            RendezvousError::Forked => (DOORBELL_FORKED, 0),
            RendezvousError::Violation(_) => (DOORBELL_VIOLATION, 0),
            RendezvousError::NoAnswer(errno) => (DOORBELL_NO_ANSWER, errno.raw_os_error()),
            RendezvousError::Interrupted => (DOORBELL_INTERRUPTED, 0),
            RendezvousError::BadName { .. } | RendezvousError::PathTooLong { .. } => {
                (DOORBELL_INVALID_ARGUMENT, 0)
            }
            RendezvousError::TimedOut { .. } => (DOORBELL_NO_ANSWER, Errno::TIMEDOUT.raw_os_error()),
            RendezvousError::Refused(Reason::OtherUser { .. }) => (DOORBELL_OTHER_USER, 0),
            RendezvousError::Refused(_) => (DOORBELL_REFUSED, 0),
            RendezvousError::OtherUser { .. } | RendezvousError::UnknownUser { .. } => {
                (DOORBELL_OTHER_USER, 0)
            }
            RendezvousError::TooMany { .. } => (DOORBELL_TOO_MANY, 0),
            RendezvousError::Owned { .. } => (DOORBELL_OWNED, 0),
            RendezvousError::NoOwner { .. } => (DOORBELL_NO_OWNER, 0),
            RendezvousError::NothingInherited => (DOORBELL_NOTHING_INHERITED, 0),
            // The enum may grow; its message says what it is.
            _ => (DOORBELL_SYSTEM, 0),
        };
        Self::new(status, errno, error.to_string())
    }
}

struct Last {
    /// Points into `message`.
    shown: doorbell_error,
    #[expect(dead_code, reason = "read through `shown`, by C")]
    message: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last::new(Failure::new(DOORBELL_OK, 0, "no call \
        failed".into())));
}

impl Last {
    fn new(failure: Failure) -> Self {
        let Failure { status, error_number, peer, message } = failure;
        let mut bytes = message.into_bytes();
        bytes.retain(|byte| *byte != 0);
        let message = CString::new(bytes).unwrap_or_default();
        let shown = doorbell_error {
            status,
            error_number,
            peer: peer.map_or(0, |peer| peer.number),
            peer_process: peer.map_or(0, |peer| peer.pid),
            message: message.as_ptr(),
        };
        Self { shown, message }
    }
}

/// Runs one call of the interface: keeps its failure for
/// [`doorbell_last_error`], and makes one of a panic.
pub(crate) fn guard(call: impl FnOnce() -> Result<doorbell_status, Failure>) -> doorbell_status {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let message = "a mistake in the library doorbell; standard error has the place";
        Err(Failure::new(DOORBELL_PANICKED, 0, message.into()))
    });
    result.unwrap_or_else(|failure| {
        let status = failure.status;
        // In a destructor of this thread's other thread-local data
        // the place may be gone: then nothing is kept.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Last::new(failure));
        status
    })
}

/// As [`guard`], for a call that either fails or has done all it is for.
pub(crate) fn guard_all(call: impl FnOnce() -> Result<(), Failure>) -> doorbell_status {
    guard(|| call().map(|()| DOORBELL_OK))
}

/// `DOORBELL_OK` if there was something, `DOORBELL_TIMED_OUT` if not.
pub(crate) fn came<T>(something: Option<T>, take: impl FnOnce(T)) -> doorbell_status {
    match something {
        Some(something) => {
            take(something);
            DOORBELL_OK
        }
        None => DOORBELL_TIMED_OUT,
    }
}

/// What the last call of this thread that failed reports. Successful calls do not change it. It is
/// valid until the next call of this thread that fails, or the thread's end. Never NULL.
// Cannot panic: reads a thread-local, and where that is gone, a constant.
#[unsafe(no_mangle)]
pub extern "C" fn doorbell_last_error() -> *const doorbell_error {
    struct Ended(doorbell_error);
    // SAFETY: it is constant, and its pointer points to a constant.
    unsafe impl Sync for Ended {}
    static ENDED: Ended = Ended(doorbell_error {
        status: DOORBELL_OK,
        error_number: 0,
        peer: 0,
        peer_process: 0,
        message: c"the thread is ending".as_ptr(),
    });
    LAST.try_with(|last| &raw const last.borrow().shown).unwrap_or(&raw const ENDED.0)
}

/// What a status means, in a few words. For any number: one that is unknown is called so.
// Cannot panic: chooses among constants.
#[unsafe(no_mangle)]
pub extern "C" fn doorbell_status_text(status: i32) -> *const c_char {
    let text = match status {
        0 => c"done",
        1 => c"the deadline came first",
        2 => c"a signal came",
        3 => c"the peer closed its end or died",
        4 => c"all slots of the bell are taken",
        5 => c"the kernel cannot do this",
        6 => c"a system call failed",
        7 => c"the peer broke the protocol",
        8 => c"the other side did not complete the rendezvous",
        9 => c"the other side cannot use what was offered",
        10 => c"more bells or eventfds than can be handed over",
        11 => c"there is a living owner",
        12 => c"there is no owner",
        13 => c"nothing was inherited",
        14 => c"the memory's layout cannot be used",
        15 => c"an argument is wrong",
        16 => c"another thread is waiting with this handle",
        17 => c"a mistake in the library",
        18 => c"the other end of the lane was left",
        19 => c"the message is too long",
        20 => c"this end of the lane is taken",
        21 => c"there is no such lane",
        22 => c"somebody untrusted shares the segment",
        23 => c"memory of the segment is lent to trusted ends",
        24 => c"this process has hung up on the maker of the segment",
        25 => c"more memory than is taken, or than there is",
        26 => c"huge pages are not shared with the untrusted",
        27 => c"this subscriber was too slow",
        28 => c"the other side is another user's",
        29 => c"the end is another process's",
        _ => c"an unknown status",
    };
    text.as_ptr()
}

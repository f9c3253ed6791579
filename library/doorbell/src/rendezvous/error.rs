// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a rendezvous failed.

use super::DESCRIPTORS;
use super::reason::Reason;
use crate::aio::AsyncIo;
use crate::attach_error::AttachError;
use crate::error::WaitError;
use crate::folder::Folder;
use crate::mapping::MapError;
use doorbell_core::layout::LayoutError;
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::WAITER_SLOTS;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a rendezvous failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RendezvousError {
    /// A system call failed.
    Os {
        /// The call.
        call: &'static str,
        /// What it reported.
        errno: Errno,
    },
    /// The memory could not be made or mapped, or its layout is not ours.
    Map(MapError),
    /// The other side broke the protocol of the rendezvous.
    Violation(PeerViolation),
    /// The other side hung up.
    NoAnswer(Errno),
    /// The other side refused, and said why.
    Refused(Reason),
    /// The other side did not answer in time.
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The thread's [`Interrupt`](crate::wait::Interrupt) ended the wait.
    Interrupted,
    /// As many clients are there as the service takes.
    Full {
        /// How many.
        most: usize,
    },
    /// Its ends cannot be awaited.
    Wait(WaitError),
    /// The other side is no service: its memory has no channel there, or somebody has an end of it.
    Ends(AttachError),
    /// More eventfds than are handed over or taken.
    TooMany {
        /// Bells.
        bells: u32,
        /// Eventfds for each.
        eventfds: u32,
        /// How many there may be for all together.
        most: u32,
    },
    /// No lanes, or more or larger ones than fit a mapping.
    CannotLayOut {
        /// Lanes asked for.
        lanes: u32,
        /// Bytes asked for in each.
        capacity: u64,
    },
    /// An [`Offer`](super::Offer) has less than its lanes need.
    NoRoomForLanes {
        /// Bells they need.
        bells: u32,
        /// Payload bytes they need.
        payload: u64,
    },
    /// The other side is a process of a user with whom this side does not share memory
    /// ([`Users`](super::Users)). Nothing was sent to it.
    OtherUser {
        /// Which.
        uid: u32,
    },
    /// The other side is a process of a user without a number in this process's user namespace, as
    /// many are: it may be anybody. Nothing was sent to it.
    UnknownUser {
        /// What the kernel shows in place of the number.
        uid: u32,
    },
    /// A file lies there that is no socket, and is not removed for one.
    NoSocket {
        /// Where.
        path: PathBuf,
    },
    /// This cannot name a service, or a socket.
    BadName {
        /// What was given.
        name: PathBuf,
    },
    /// The path of a socket is longer than the kernel takes.
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        length: usize,
        /// How many there may be.
        longest: usize,
    },
    /// No folder is this user's alone in which a service of a name could listen, or be looked for.
    NoFolder {
        /// Where there could be one, and what is there.
        looked: Vec<Folder>,
    },
    /// A living process listens there.
    Owned {
        /// Where.
        path: PathBuf,
    },
    /// Nobody listens there.
    NoOwner {
        /// Where; of the folders in which a name is looked for, the first.
        path: PathBuf,
    },
    /// The segment was joined, and this process has hung up on its
    /// maker since, or was forked from the one that joined.
    HungUp,
    /// This is a copy, which a forked child has of its parent's host, or service.
    Forked,
    /// The peer is not trusted, and memory of the segment is lent out by a channel of trusted ends.
    Lent,
    /// This process was not started with a bell segment to inherit.
    NothingInherited,
    /// The other process has not taken the ends that were sent to it before.
    EndsNotTaken,
}

impl RendezvousError {
    /// What the other side is told of it.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Full { most } => Reason::Full { most: u32::try_from(*most).unwrap_or(u32::MAX) },
            Self::OtherUser { uid } | Self::UnknownUser { uid } => Reason::OtherUser { uid: *uid },
            Self::TimedOut { .. } => Reason::TooSlow,
            Self::Map(MapError::TooMuch { .. }) => Reason::TooMuchMemory,
            Self::TooMany { .. } => Reason::TooMany,
            Self::Lent => Reason::Lent,
            Self::HungUp => Reason::HungUp,
            Self::Violation(_) => Reason::Violation,
            Self::Os { call: "io_setup" | "io_submit", errno } => Reason::NoSignals { errno: *errno },
            Self::Os { errno, .. } | Self::Map(MapError::Os { errno, .. }) => match *errno {
                Errno::MFILE | Errno::NFILE => Reason::NoDescriptors,
                Errno::NOMEM | Errno::NOBUFS => Reason::NoMemory,
                errno => Reason::Os { errno },
            },
            Self::Map(_) => Reason::Unusable,
            Self::Refused(reason) => *reason,
            _ => Reason::Unsaid,
        }
    }
}

impl fmt::Display for RendezvousError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os { call, errno: errno @ Errno::ACCESS } => write!(
                f,
                "{call} failed: {errno}; the place is another user's, who lets in others than \
                 itself and root only by `Users` and the file's rights"
            ),
            Self::Os { call, errno: errno @ Errno::MFILE } => {
                let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
                write!(
                    f,
                    "{call} failed: {errno}; {most} files may be open (`ulimit -n`), and a client \
                     or a service takes {DESCRIPTORS}: raise that number, or have fewer"
                )
            }
            Self::Os { call, errno: errno @ Errno::TOOMANYREFS } => write!(
                f,
                "{call} failed: {errno}; as many descriptors of this user are on their way as a \
                 process may have open: receive some, or raise that number (`ulimit -n`)"
            ),
            Self::Os { call: call @ ("io_setup" | "io_submit"), errno } => {
                write!(f, "{call} failed: {errno}; peers that are not trusted are signalled by it: ")?;
                match AsyncIo::now() {
                    // Of io_submit it is a lack of memory, or a filter that says it was done.
                    Some(limit) if *call == "io_setup" && *errno == Errno::AGAIN => limit.fmt(f),
                    _ => f.write_str("raise fs.aio-max-nr, or let the filter pass it"),
                }
            }
            Self::Os { call, errno: errno @ Errno::FBIG } => {
                write!(f, "{call} failed: {errno}; raise the size that a file may have (`ulimit -f`)")
            }
            Self::Os { call, errno } => write!(f, "{call} failed: {errno}"),
            Self::Map(error) => error.fmt(f),
            Self::Violation(violation) => violation.fmt(f),
            Self::NoAnswer(Errno::CONNRESET | Errno::PIPE) => f.write_str(
                "the other side hung up in the middle of the rendezvous, and said \
                    nothing: it ended",
            ),
            Self::NoAnswer(errno) => write!(f, "the other side did not complete the rendezvous: {errno}"),
            Self::OtherUser { uid } => write!(
                f,
                "the other side is a process of user {uid}, with whom no memory is shared; say so \
                 by `Users` if it is to be"
            ),
            Self::UnknownUser { uid } => write!(
                f,
                "the other side is a process of a user who has no number in this user namespace \
                 (the kernel shows {uid}), and may be anybody's; run both sides in one user \
                 namespace, or let it in by `Users::Chosen`"
            ),
            Self::Refused(reason) => write!(f, "the other side refused: {reason}"),
            Self::TimedOut { after } => write!(
                f,
                "the other side did not answer within {after:?}: it is busy, stopped, or serves no \
                 callers now; wait longer, or look at it with `doorbell list-services`"
            ),
            Self::Interrupted => f.write_str("the wait was interrupted; connect again to go on"),
            Self::Full { most } => {
                write!(
                    f,
                    "{most} clients are there, as many as this service takes \
                    (`ListenOptions::most_clients`)"
                )
            }
            Self::Wait(error) => error.fmt(f),
            Self::Ends(error) => write!(f, "no channel to the other side: {error}"),
            Self::TooMany { bells, eventfds, most } => write!(
                f,
                "{bells} bells with {eventfds} eventfds each: at most {WAITER_SLOTS} each, and \
                 {most} together, are taken here; offer fewer, or say how many may be taken"
            ),
            Self::CannotLayOut { lanes, capacity } => write!(
                f,
                "{lanes} lanes of {capacity} bytes cannot be laid out: ask for at least one, or \
                 fewer or smaller ones"
            ),
            Self::NoRoomForLanes { bells, payload } => write!(
                f,
                "the offer's lanes need {bells} bells and {payload} bytes of payload; make the \
                 offer by `Offer::of_lanes`"
            ),
            Self::NoSocket { path } => {
                write!(f, "{} is a file that is no socket; remove it, or choose another path", path.display())
            }
            Self::BadName { name } => write!(
                f,
                "{name:?} cannot name a service: a name is not empty, not `.` or `..`, and has no \
                 white space and no control character; a path has none of the latter"
            ),
            Self::PathTooLong { path, length, longest } => write!(
                f,
                "the path {} has {length} bytes, and a socket's at most {longest}; choose a \
                 shorter name, or a shorter folder by DOORBELL_RUNTIME_DIR",
                path.display()
            ),
            Self::NoFolder { looked } => {
                let looked: Vec<_> = looked.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "no folder is this user's alone to hold the sockets of names: {}; or name a \
                     folder by DOORBELL_RUNTIME_DIR",
                    looked.join("; ")
                )
            }
            Self::Owned { path } => write!(
                f,
                "somebody listens at {} already; connect to it, or choose another name",
                path.display()
            ),
            Self::NoOwner { path } => write!(
                f,
                "nobody listens at {}; start the service first, as this user if it has a name without a path",
                path.display()
            ),
            Self::HungUp => f.write_str(
                "the maker of this segment takes this process for gone; keep the connection it was \
                 met in, in the process that met it",
            ),
            Self::Forked => f.write_str(
                "this path, or name, is served by the process that forked this one; listen at \
                 another in the child",
            ),
            Self::Lent => f.write_str(
                "a channel of trusted ends is on this segment; meet a peer that is not trusted on \
                 a segment of its own",
            ),
            Self::NothingInherited => f.write_str(
                "DOORBELL_FD is not set to a descriptor; the parent starts this program with \
                 `inherited::offer`",
            ),
            Self::EndsNotTaken => f.write_str(
                "the other process has not received the ends that were sent to it before; send \
                 this one again when it has",
            ),
        }
    }
}

impl std::error::Error for RendezvousError {}

impl From<PeerViolation> for RendezvousError {
    fn from(violation: PeerViolation) -> Self {
        Self::Violation(violation)
    }
}

impl From<AttachError> for RendezvousError {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::HungUp => Self::HungUp,
            AttachError::Violation(violation) => Self::Violation(violation),
            error => Self::Ends(error),
        }
    }
}

impl From<MapError> for RendezvousError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Layout(LayoutError::Violation(violation)) => Self::Violation(violation),
            error => Self::Map(error),
        }
    }
}

/// What a failed `call` is told as.
pub(super) fn os(call: &'static str) -> impl Fn(Errno) -> RendezvousError {
    move |errno| RendezvousError::Os { call, errno }
}

#[cfg(test)]
mod tests {
    use super::RendezvousError;
    use rustix::io::Errno;

    /// "Nobody owns the name" told neither which nor where.
    #[test]
    fn who_finds_nobody_or_somebody_is_told_where() {
        let path = std::path::PathBuf::from("/run/clock");
        for told in [RendezvousError::NoOwner { path: path.clone() }, RendezvousError::Owned { path }] {
            assert!(told.to_string().contains("/run/clock"), "{told}");
        }
    }

    /// "Permission denied" alone told a stranger neither whose the
    /// place was nor what would let it in.
    #[test]
    fn who_may_not_open_the_place_is_told_what_would_let_it_in() {
        for call in ["connect", "open"] {
            let told = RendezvousError::Os { call, errno: Errno::ACCESS }.to_string();
            assert!(
                told.contains(call) && told.contains("another user's") && told.contains("`Users`"),
                "{told}"
            );
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is at the other end, whether it still lives, and how far it is trusted.

use crate::fork_gate::ForkMutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Names a peer of this process: its number in the order of meeting, and what the kernel said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId {
    /// Counts meetings of this process from 1 on; never reused.
    pub number: u32,
    /// The process at the other end as this process's PID namespace names it (`SO_PEERCRED`); 0 if it has no
    /// name here. A process number may be reused after a death: it is for people to read.
    pub pid: u32,
}

impl PeerId {
    /// One that this process has not met, and knows of by others: the owner of a name, or another joiner of its board.
    pub const UNMET: Self = Self { number: 0, pid: 0 };
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::UNMET {
            return f.write_str("a peer that this process has not met itself");
        }
        write!(f, "peer {} (process {})", self.number, self.pid)
    }
}

/// The process at the other end.
#[derive(Debug)]
pub struct Peer {
    pub(crate) id: PeerId,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) pidfd: Option<OwnedFd>,
}

impl Peer {
    /// Its name.
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// The user it ran as when it connected. Over a pair of sockets, as between parent and child, that of the process that
    /// made the pair.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The group it ran as when it connected. As with [`uid`](Self::uid).
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// A descriptor of the process (`SO_PEERPIDFD`, Linux 6.5). `None` if the kernel has none to give.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }
}

mod sealed {
    pub trait Sealed {
        const TRUSTED: bool;
    }
}

/// How far a peer is trusted: [`Trusted`] or [`Untrusted`].
pub trait Trust: sealed::Sealed + fmt::Debug + Send + Sync + 'static {}

/// The peer may write anything anywhere in the mapping at any moment. Everything it writes is copied once and
/// checked; nothing it writes is lent out as a reference.
#[derive(Debug)]
pub enum Untrusted {}

/// The peer follows the protocol: it is this same program, or one as good. Memory that it has committed may be
/// lent out without a copy.
#[derive(Debug)]
pub enum Trusted {}

impl sealed::Sealed for Untrusted {
    const TRUSTED: bool = false;
}
impl sealed::Sealed for Trusted {
    const TRUSTED: bool = true;
}
impl Trust for Untrusted {}
impl Trust for Trusted {}

/// What this process knows about the lives of those it shares a mapping with.
///
/// Only the kernel's word is written here: a hang-up of the socket, an exit.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// How many peers have gone. A handle compares it with what it has reported.
    deaths: AtomicU32,
    met: AtomicU32,
    /// Has anybody been admitted who is not trusted?
    distrust: AtomicBool,
    /// Has a handle been made that lends memory out? Never together with distrust.
    lent: ForkMutex<bool>,
    /// In the order of their going, with the numbers by which they took seats.
    gone: ForkMutex<Vec<(PeerId, u32)>>,
}

impl Lives {
    /// May a peer of trust `T` have the memory? Not if it is not trusted and memory is lent out already. To be asked
    /// before it is given anything: after a yes to one who is not trusted nothing is
    /// lent out any more, even if the meeting fails then.
    #[must_use]
    pub(crate) fn admit<T: Trust>(&self) -> bool {
        let lent = self.lent.lock();
        if !T::TRUSTED {
            if *lent {
                return false;
            }
            self.distrust.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Counts a peer that was admitted.
    pub(crate) fn met(&self) {
        self.met.fetch_add(1, Ordering::Relaxed);
    }

    /// May memory be lent out as a reference? From then on nobody may be met who is not trusted.
    pub(crate) fn lend(&self) -> bool {
        let mut lent = self.lent.lock();
        *lent |= self.all_trusted();
        *lent
    }

    /// Is everybody trusted?
    pub(crate) fn all_trusted(&self) -> bool {
        !self.distrust.load(Ordering::Relaxed)
    }

    /// Records a death, runs `settle`, and only then counts it: whoever is told finds what the dead one had settled. The
    /// caller then wakes whoever sleeps.
    pub(crate) fn died(&self, peer: PeerId, holder: u32, settle: impl FnOnce()) {
        self.gone.lock().push((peer, holder));
        settle();
        // Release: pairs with `deaths` and `unreported`, which read `gone` and what was settled afterwards.
        self.deaths.fetch_add(1, Ordering::Release);
    }

    /// A peer that was met and did not die is no longer counted.
    pub(crate) fn let_go(&self) {
        self.met.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many have gone so far.
    pub(crate) fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Is there a death that a handle which has reported `reported` of them must report, or nobody left?
    #[inline]
    pub(crate) fn unreported(&self, reported: u32) -> bool {
        let deaths = self.deaths.load(Ordering::Acquire);
        deaths != reported || (deaths != 0 && deaths == self.met.load(Ordering::Relaxed))
    }

    /// The next death to report. When nobody is left, the last one again and again.
    pub(crate) fn report(&self, reported: &mut u32) -> Option<PeerId> {
        let gone = self.gone.lock();
        let next = *reported as usize;
        if let Some((peer, _)) = gone.get(next) {
            *reported += 1;
            return Some(*peer);
        }
        self.last_of(&gone)
    }

    /// The last to go, if nobody is left.
    pub(crate) fn all_gone(&self) -> Option<PeerId> {
        self.last_of(&self.gone.lock())
    }

    fn last_of(&self, gone: &[(PeerId, u32)]) -> Option<PeerId> {
        let all_gone = self.deaths() == self.met.load(Ordering::Relaxed);
        gone.last().map(|(peer, _)| *peer).filter(|_| all_gone)
    }

    /// The peer that took seats as `holder`, if it has gone.
    pub(crate) fn gone(&self, holder: u32) -> Option<PeerId> {
        let gone = self.gone.lock();
        gone.iter().rev().find(|(_, its)| *its == holder).map(|(peer, _)| *peer)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is at the other end, whether it still lives, and how far it is trusted.

use crate::atfork_lock::ForkMutex;
use crate::generation::tell_news;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Names a peer of this process: its number in the order of
/// rendezvous, and what the kernel said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId {
    /// Counts rendezvous of this process from 1 on; never reused.
    pub number: u32,
    /// The process at the other end as this process's PID namespace
    /// names it (`SO_PEERCRED`); 0 if it has no name here. A process
    /// number may be reused after a death: it is for people to read.
    pub pid: u32,
}

impl PeerId {
    /// One that this process has not met, and knows of by others: another joiner of its segment.
    pub const UNMET: Self = Self { number: 0, pid: 0 };

    /// The next that this process meets.
    pub(crate) fn met(pid: u32) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), pid }
    }
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

    /// The user it ran as when it connected. Over a pair of sockets, as between parent and child,
    /// that of the process that made the pair.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The group it ran as when it connected. As with [`uid`](Self::uid).
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// A descriptor of the process (`SO_PEERPIDFD`, Linux 6.5).
    /// `None` if the kernel has none to give.
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

/// The peer may write anything anywhere in the mapping at any moment. Everything it writes is
/// copied once and checked; nothing it writes is lent out as a reference.
#[derive(Debug)]
pub enum Untrusted {}

/// The peer follows the protocol: it is this same program, or one as good. Memory that it has
/// committed may be lent out without a copy.
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
    gone: ForkMutex<Gone>,
}

/// So many deaths are remembered. Who has not reported an older one by then reports it no more, and
/// the name of one that died at an end long ago is forgotten: a host with one segment and
/// successors for a year would keep all of them.
const REMEMBERED: usize = 1024;

/// A peer that has gone.
#[derive(Clone, Copy, Debug)]
struct Late {
    peer: PeerId,
    /// The number by which it took waiter slots and ends.
    holder: u32,
}

/// Those who have gone.
#[derive(Debug, Default)]
struct Gone {
    /// Seen by the kernel, and what they held not settled yet.
    dying: Vec<Late>,
    /// In the order of being counted, the last [`REMEMBERED`].
    counted: VecDeque<Late>,
    /// How many were counted and are not remembered.
    forgotten: u32,
}

impl Lives {
    /// May a peer of trust `T` have the memory? Not if it is not trusted and memory is lent out
    /// already. To be asked before it is given anything: after a yes to one who is not trusted
    /// nothing is lent out any more, even if the rendezvous fails then.
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

    /// Records a death, runs `settle`, and only then counts it: whoever is told finds what the dead
    /// one had settled, also if another dies meanwhile. The caller then wakes whoever sleeps.
    pub(crate) fn died(&self, peer: PeerId, holder: u32, settle: impl FnOnce()) {
        self.gone.lock().dying.push(Late { peer, holder });
        settle();
        let mut gone = self.gone.lock();
        gone.dying.retain(|late| late.peer != peer || late.holder != holder);
        if gone.counted.len() == REMEMBERED {
            gone.counted.pop_front();
            gone.forgotten = gone.forgotten.wrapping_add(1);
        }
        gone.counted.push_back(Late { peer, holder });
        // Release: pairs with `deaths` and `unreported`, which read `gone` and what was settled afterwards.
        self.deaths.fetch_add(1, Ordering::Release);
        tell_news();
    }

    /// Whoever comes by the number `holder` now is not the dead one who had it.
    pub(crate) fn forget(&self, holder: u32) {
        // 0 is nobody's number.
        let counted = &mut self.gone.lock().counted;
        counted.iter_mut().filter(|late| late.holder == holder).for_each(|late| late.holder = 0);
    }

    /// A peer that was met and did not die is no longer counted.
    pub(crate) fn let_go(&self) {
        self.met.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many have gone so far.
    pub(crate) fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Is there a death that a handle which has reported `reported`
    /// of them must report, or nobody left?
    #[inline]
    pub(crate) fn unreported(&self, reported: u32) -> bool {
        let deaths = self.deaths.load(Ordering::Acquire);
        deaths != reported || (deaths != 0 && deaths == self.met.load(Ordering::Relaxed))
    }

    /// The next death to report. When nobody is left, the last one again and again.
    pub(crate) fn report(&self, reported: &mut u32) -> Option<PeerId> {
        let gone = self.gone.lock();
        // What is forgotten counts as reported.
        let next = reported.wrapping_sub(gone.forgotten);
        let next = if next > REMEMBERED as u32 { 0 } else { next };
        if let Some(late) = gone.counted.get(next as usize) {
            *reported = gone.forgotten.wrapping_add(next).wrapping_add(1);
            return Some(late.peer);
        }
        self.last_of(&gone)
    }

    /// The last to go, if nobody is left.
    pub(crate) fn all_gone(&self) -> Option<PeerId> {
        self.last_of(&self.gone.lock())
    }

    fn last_of(&self, gone: &Gone) -> Option<PeerId> {
        let all_gone = self.deaths() == self.met.load(Ordering::Relaxed);
        gone.counted.back().map(|late| late.peer).filter(|_| all_gone)
    }

    /// The peer that took waiter slots as `holder`, if it has gone and what it held is settled.
    pub(crate) fn gone(&self, holder: u32) -> Option<PeerId> {
        let gone = self.gone.lock();
        gone.counted.iter().rev().find(|late| late.holder == holder).map(|late| late.peer)
    }

    /// The name of the peer that died as `holder`, for one who knows already that it did.
    pub(crate) fn name(&self, holder: u32) -> Option<PeerId> {
        let gone = self.gone.lock();
        let mut latest_first = gone.dying.iter().rev().chain(gone.counted.iter().rev());
        latest_first.find(|late| late.holder == holder).map(|late| late.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lives, PeerId, REMEMBERED};
    use std::sync::mpsc::channel;
    use std::thread;

    fn peer(number: u32) -> PeerId {
        PeerId { number, pid: number }
    }

    /// Deaths come from the watcher and from whoever hangs up. The first of two was reported in the
    /// second's place, and the end it had held was still taken.
    #[test]
    fn of_two_deaths_at_once_the_one_that_is_settled_is_told_and_not_the_one_that_came_first() {
        let lives = Lives::default();
        (0..3).for_each(|_| lives.met());
        let lives = &lives;
        let ((begun, has_begun), (go_on, may_go_on)) = (channel(), channel());
        thread::scope(|scope| {
            scope.spawn(move || {
                lives.died(peer(1), 11, || {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                });
            });
            has_begun.recv().unwrap();
            lives.died(peer(2), 12, || {});
            let mut reported = 0;
            assert_eq!(lives.report(&mut reported), Some(peer(2)));
            assert!(!lives.unreported(reported));
            assert_eq!((lives.gone(11), lives.gone(12)), (None, Some(peer(2))));
            assert_eq!(lives.name(11), Some(peer(1)), "one who has seen its end vacated may know who it was");
            go_on.send(()).unwrap();
        });
        let mut reported = 1;
        assert_eq!((lives.deaths(), lives.report(&mut reported)), (2, Some(peer(1))));
        assert_eq!(lives.gone(11), Some(peer(1)));
    }

    #[test]
    fn a_host_whose_peers_come_and_go_for_ever_remembers_the_last_of_them_alone() {
        let lives = Lives::default();
        let deaths = 3 * REMEMBERED as u32;
        for number in 1..=deaths {
            lives.met();
            lives.died(peer(number), number, || {});
        }
        assert_eq!(lives.gone.lock().counted.len(), REMEMBERED);
        assert_eq!((lives.gone(1), lives.gone(deaths)), (None, Some(peer(deaths))));
        // One that has reported nothing yet reports those, in order, and is then even with the count.
        lives.met();
        let mut reported = 0;
        for number in deaths - REMEMBERED as u32 + 1..=deaths {
            assert!(lives.unreported(reported));
            assert_eq!(lives.report(&mut reported), Some(peer(number)));
        }
        assert!(!lives.unreported(reported));
        assert_eq!(lives.report(&mut reported), None);
    }
}

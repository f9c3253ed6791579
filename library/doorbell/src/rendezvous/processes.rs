// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who shares a segment without a connection that would tell of its end: a parent and its forked
//! children, processes that were given descriptors.
//!
//! Each takes ends by its own number ([`holder`]), so that whoever meets it at the other end of a
//! lane can have the kernel tell of its end, and whoever finds an end taken can ask whether its
//! holder lives. One that ends before it takes an end is nobody here.

use crate::atfork_lock::ForkMutex;
use crate::bell_state::BellState;
use crate::holder::{self, Process as Found};
use crate::mapping::Mapping;
use crate::origin::Origin;
use crate::peer::{Lives, PeerId};
use crate::process::Process;
use crate::watch::{Watch, watch_exit};
use doorbell_core::channel::layout::Lanes;
use doorbell_core::fault;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Those who share a segment without a connection, as far as this process has met them.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(super) mapping: Arc<Mapping>,
    pub(super) lanes: Lanes,
    pub(super) states: Vec<Arc<BellState>>,
    pub(super) lives: Arc<Lives>,
    pub(super) origin: Arc<Origin>,
    /// Where their numbers are those of processes.
    namespace: u32,
    watched: ForkMutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    /// Who watches: a forked child has a copy of its parent's.
    process: Option<Process>,
    all: Vec<One>,
}

#[derive(Debug)]
struct One {
    holder: u32,
    pidfd: OwnedFd,
    watch: Watch,
}

impl Watched {
    /// Those whom this process watches.
    fn ours(&mut self) -> &mut Vec<One> {
        let current = Process::current();
        if self.process != Some(current) {
            (self.process, self.all) = (Some(current), Vec::new());
        }
        &mut self.all
    }

    fn take(&mut self, holder: u32) -> Option<One> {
        let all = self.ours();
        let at = all.iter().position(|one| one.holder == holder)?;
        Some(all.swap_remove(at))
    }
}

impl Processes {
    pub(super) fn new(
        mapping: Arc<Mapping>,
        lanes: Lanes,
        states: Vec<Arc<BellState>>,
        lives: Arc<Lives>,
        origin: Arc<Origin>,
        namespace: u32,
    ) -> Arc<Self> {
        // Somebody may always come still: that all have gone is never known.
        lives.met();
        Arc::new(Self { mapping, lanes, states, lives, origin, namespace, watched: ForkMutex::default() })
    }

    /// Sees to it that the end of the process `holder`, who has an
    /// end of a lane, is heard of from now on.
    pub(crate) fn watch(self: &Arc<Self>, holder: u32) {
        let is_this = holder == self.origin.holder(&self.mapping);
        if is_this || self.watched.lock().ours().iter().any(|one| one.holder == holder) {
            return;
        }
        let pidfd = match holder::look(holder, self.namespace) {
            Found::Unknown => return,
            Found::Ended => return self.lost(holder),
            Found::Lives(pidfd) => pidfd,
        };
        // Of one who had the same number, long ago.
        self.lives.forget(holder);
        self.lives.met();
        let watcher = Arc::downgrade(self);
        let exited = move || {
            if let Some(processes) = Weak::upgrade(&watcher) {
                processes.bury(holder);
                drop(processes.watched.lock().take(holder));
            }
        };
        let watch = watch_exit(pidfd.as_fd(), Box::new(exited));
        match watch {
            Ok(watch) => self.watched.lock().ours().push(One { holder, pidfd, watch }),
            Err(_) => return self.lives.let_go(),
        }
        if self.lives.gone(holder).is_some() {
            // Before it was among the watched.
            drop(self.watched.lock().take(holder));
        }
    }

    /// Has the process `holder` ended? Then what it held is free on return.
    pub(crate) fn has_ended(self: &Arc<Self>, holder: u32) -> bool {
        let ended = holder != self.origin.holder(&self.mapping)
            && matches!(holder::look(holder, self.namespace), Found::Ended);
        if ended {
            self.lost(holder);
        }
        ended
    }

    /// The process `holder` was found to have ended.
    fn lost(&self, holder: u32) {
        let one = self.watched.lock().take(holder);
        match one {
            // Unless the watcher has seen to it.
            Some(one) => {
                if one.watch.end(one.pidfd.as_fd()).is_some() {
                    self.bury(holder);
                }
            }
            None => {
                self.lives.met();
                self.bury(holder);
            }
        }
    }

    /// Settles what the process `holder` held, and tells of its end.
    fn bury(&self, holder: u32) {
        let peer = PeerId::met(holder::process_of(holder).unwrap_or(0));
        bury(&self.mapping, Some(&self.lanes), &self.states, &self.lives, peer, holder, true);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let all = std::mem::take(self.watched.lock().ours());
        all.iter().for_each(|one| drop(one.watch.end(one.pidfd.as_fd())));
    }
}

/// `peer` has gone, who takes waiter slots and ends as `holder`: tells the waiters. If nobody else
/// does, gives what it held to others (`settles`).
pub(super) fn bury(
    mapping: &Mapping,
    lanes: Option<&Lanes>,
    states: &[Arc<BellState>],
    lives: &Lives,
    peer: PeerId,
    holder: u32,
    settles: bool,
) {
    lives.died(peer, holder, || {
        if settles {
            if let Some(lanes) = lanes {
                crate::directory::vacate(mapping, lanes, states, holder);
            }
            for slot in states.iter().flat_map(|state| &state.record().slot_holders) {
                fault::point();
                let _ = slot.compare_exchange(holder, 0, Ordering::Release, Ordering::Relaxed);
            }
        }
    });
    // It may have been about to wake somebody.
    states.iter().for_each(|state| state.wake_everybody());
}

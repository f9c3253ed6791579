// SPDX-License-Identifier: MIT OR Apache-2.0
//! Those who wait for a queue, or a permit, together with other
//! things, or in a runtime: each at a bell of its own.

use crate::bell::Bell;
use crate::bell_state::BellState;
#[cfg(feature = "tokio")]
use crate::error::WaitError;
use crate::mapping::MapError;
use crate::wait::WaitEntry;
#[cfg(feature = "tokio")]
use crate::wait::{Listener, Token};
#[cfg(feature = "tokio")]
use doorbell_core::wake::{Waiter, listen};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Who is told of what was made true. Nearly always nobody.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    are_there: AtomicBool,
    bells: Mutex<Vec<Weak<BellState>>>,
}

impl Watchers {
    /// Tells all of what was made true before, and after a fence since: either that is seen by who
    /// has come meanwhile, or it is told.
    #[inline]
    pub(crate) fn tell(&self) {
        if self.are_there.load(Ordering::Relaxed) {
            self.tell_all();
        }
    }

    #[cold]
    fn tell_all(&self) {
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        // All: one that is told may have given up.
        bells.iter().filter_map(Weak::upgrade).for_each(|bell| bell.announce());
    }

    /// Another who is told.
    pub(crate) fn watch(&self) -> Result<Watcher, MapError> {
        let bell = Bell::new()?;
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|bell| bell.strong_count() > 0);
        bells.push(Arc::downgrade(bell.state()));
        self.are_there.store(true, Ordering::Relaxed);
        Ok(Watcher(bell))
    }
}

/// One who is told. Its wait has the fence that [`Watchers::tell`] relies on.
#[derive(Debug)]
pub(crate) struct Watcher(Bell);

impl Watcher {
    /// Its place in a wait.
    pub(crate) fn entry(&mut self) -> WaitEntry<'_> {
        let (state, listener) = self.0.parts();
        WaitEntry { state, listener }
    }

    /// Makes its file unreadable and arms, unless it is `ready` after all. Says whether it is.
    #[cfg(feature = "tokio")]
    pub(crate) fn arm(&mut self, ready: impl FnMut() -> bool) -> Result<bool, WaitError> {
        let (state, listener) = self.0.parts();
        let (slot, index) = listener.slots().take_eventfd()?;
        let mut waiter = [Waiter::new(&state.record().wake, slot)];
        listen(&mut waiter, &mut Token { state, index }, ready)
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn listener(&mut self) -> &mut Listener {
        self.0.listener()
    }
}

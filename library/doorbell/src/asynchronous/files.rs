// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files a task waits for, as its runtime knows them.

use super::turn::MOST_TURNS;
use super::watched::Watched;
use crate::bell_state::BellState;
use crate::error::{Unmade, WaitError};
use crate::wait::Listener;
use crate::wait::MADE;
use std::sync::{Arc, Weak};
use std::task::Context;
use tokio::runtime::Handle;

/// The eventfds of the waiters that a task sleeps as.
#[derive(Debug)]
pub(super) struct Files {
    /// Of the task that made this, whichever polls it.
    runtime: Handle,
    watched: Vec<OfWaiter>,
}

#[derive(Debug)]
struct OfWaiter {
    /// Whose eventfd it is: the bell's, if that is still there, and which of them.
    state: Weak<BellState>,
    index: usize,
    /// The waiter slot may be given up while the runtime still knows it (a lane that is removed, a
    /// subscription that ends), and whoever takes it next registers the number of the original.
    file: Watched,
}

impl Files {
    /// # Panics
    /// Outside a tokio runtime.
    pub(super) fn new() -> Self {
        Self { runtime: Handle::current(), watched: Vec::new() }
    }

    /// Forgets that any file was readable, and has the task woken when one becomes so from now on.
    /// Not if one becomes so again and again: false.
    ///
    /// Before the waiter consumes its tokens and arms: a token that comes after that is a wake-up.
    pub(super) fn forget(&self, cx: &mut Context<'_>) -> Result<bool, WaitError> {
        for OfWaiter { file, .. } in &self.watched {
            let mut turns = 0;
            while file.forget(cx).map_err(failed)? {
                turns += 1;
                if turns == MOST_TURNS {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Watches the files of `listeners` too. Were they watched
    /// already? If not, the task is not yet woken by all of them.
    pub(super) fn watch<'a>(
        &mut self,
        listeners: impl Iterator<Item = &'a mut Listener>,
    ) -> Result<bool, WaitError> {
        let (mut in_place, mut added) = (0, false);
        for listener in listeners {
            let (state, index) = listener.eventfd()?;
            match self.find(in_place, state, index) {
                Some(at) => self.watched.swap(in_place, at),
                None => {
                    let runtime = self.runtime.enter();
                    let file = Watched::new(state.eventfd(index).expect(MADE)).map_err(failed)?;
                    drop(runtime);
                    self.watched.push(OfWaiter { state: Arc::downgrade(state), index, file });
                    let last = self.watched.len() - 1;
                    self.watched.swap(in_place, last);
                    added = true;
                }
            }
            in_place += 1;
        }
        Ok(!added)
    }

    /// Ceases to watch the files for which none of `listeners` has a waiter slot. The `used` ones
    /// of this sleep have; another may be used in the next, and is kept.
    pub(super) fn keep<'a>(&mut self, used: usize, listeners: impl Iterator<Item = &'a mut Listener>) {
        if self.watched.len() == used {
            return;
        }
        let mut kept = 0;
        for listener in listeners {
            let Some((_, index)) = listener.eventfd_slot() else { continue };
            if let Some(at) = self.find(kept, listener.slots().state(), index) {
                self.watched.swap(kept, at);
                kept += 1;
            }
        }
        self.watched.truncate(kept);
    }

    /// Where the file of eventfd `index` of `state` is, `from` there on.
    fn find(&self, from: usize, state: &Arc<BellState>, index: usize) -> Option<usize> {
        let is_this =
            |watched: &OfWaiter| watched.index == index && watched.state.as_ptr() == Arc::as_ptr(state);
        Some(from + self.watched.get(from..)?.iter().position(is_this)?)
    }
}

fn failed((call, errno): Unmade) -> WaitError {
    WaitError::Os { call, errno }
}

#[cfg(test)]
mod tests {
    use super::Files;
    use crate::bell::Bell;
    use std::iter::once;

    /// Who is held back by two in turn registered a file with the
    /// runtime, and took another out, at each change.
    #[test]
    fn a_file_stays_watched_while_its_slot_is_held_and_no_longer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut files = Files::new();
            let mut bells: [Bell; 2] = std::array::from_fn(|_| Bell::new().unwrap());
            let mut sleep_at = |bells: &mut [Bell], at: usize| {
                let was_watched = files.watch(once(bells[at].listener())).unwrap();
                files.keep(1, bells.iter_mut().map(Bell::listener));
                was_watched
            };
            let watched = [0, 1, 0, 1].map(|at| sleep_at(&mut bells, at));
            assert_eq!(watched, [false, false, true, true]);
            assert!(sleep_at(&mut bells[..1], 0), "and the other has gone");
            assert!(!sleep_at(&mut bells, 1));
        });
    }
}

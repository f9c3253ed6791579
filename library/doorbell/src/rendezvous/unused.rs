// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends of lanes that nobody has used, and nobody will.

use super::{RendezvousError, Segment, os};
use crate::directory::{Ends, leave_unused};
use crate::watch::{Watch, watch};
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Leaves ends that nobody has used when a file hangs up, unless it is dropped before.
#[derive(Debug)]
pub struct Unused {
    file: OwnedFd,
    watch: Watch,
}

impl Segment {
    /// Leaves the ends of `side` that nobody has used yet, as if somebody had been there: whoever
    /// has the others is told. Somebody may still come.
    pub fn leave_unused(&self, side: Ends) {
        self.how_to_leave_unused(side)();
    }

    /// As [`leave_unused`](Self::leave_unused), when `file` hangs up: a socket the other end of
    /// which all have who could use an end of `side`.
    ///
    /// # Errors
    /// [`RendezvousError::Os`].
    pub fn leave_unused_after(&self, file: OwnedFd, side: Ends) -> Result<Unused, RendezvousError> {
        let watch = watch(file.as_fd(), Box::new(self.how_to_leave_unused(side))).map_err(os("epoll_ctl"))?;
        Ok(Unused { file, watch })
    }

    fn how_to_leave_unused(&self, side: Ends) -> impl FnOnce() + Send + use<> {
        let (mapping, lanes, states) = (Arc::clone(&self.mapping), self.lanes, self.states.clone());
        let holder = self.origin.holder(&self.mapping);
        move || {
            if let Some(lanes) = lanes {
                leave_unused(&mapping, &lanes, holder, side);
            }
            states.iter().for_each(|state| state.wake_everybody());
        }
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        drop(self.watch.end(self.file.as_fd()));
    }
}

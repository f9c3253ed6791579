// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for an event in tokio.

use super::{Event, Events, GpuError};
use crate::errno::errno;
use std::io;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for events of the GPU in tokio, one at a time; make one for each task that waits.
#[derive(Debug)]
pub struct AsyncWaiter {
    events: AsyncFd<Events>,
    key: u64,
}

fn failed(error: &io::Error) -> GpuError {
    GpuError::Os { call: "epoll_ctl", errno: errno(error) }
}

impl AsyncWaiter {
    /// In the runtime of the calling task.
    ///
    /// # Errors
    /// As [`Events::new`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new() -> Result<Self, GpuError> {
        // SAFETY: the descriptor of `Events` is open and the same
        // until they are dropped, and nothing takes it out.
        let events = unsafe { AsyncFd::register_with_interest(Events::new()?, Interest::READABLE) };
        Ok(Self { events: events.map_err(|error| failed(&error.into()))?, key: 0 })
    }

    /// Waits until what was recorded in `event` is done. It may be
    /// dropped meanwhile, by a time-out for example.
    ///
    /// # Errors
    /// [`GpuError::Call`]: the work before the event failed, or the device is lost.
    pub async fn wait(&mut self, event: &Event<'_>) -> Result<(), GpuError> {
        // Whatever an earlier wait that was dropped waited for.
        self.events.get_mut().remove(self.key);
        self.key += 1;
        // SAFETY: the event is borrowed until this wait is over; where
        // it is dropped, the next one removes it before it looks.
        unsafe { self.events.get_mut().add(event, self.key) }?;
        loop {
            let key = self.key;
            let mut ready = self.events.readable_mut().await.map_err(|error| failed(&error))?;
            // Before the look: what comes after it makes the task run anew.
            ready.clear_ready();
            let done = ready.get_inner_mut().done()?;
            if let Some(done) = done.into_iter().find(|done| done.key == key) {
                return done.result;
            }
        }
    }
}

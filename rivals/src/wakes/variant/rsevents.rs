// SPDX-License-Identifier: MIT OR Apache-2.0
//! rsevents' event that resets itself: set before a wait, it ends the next one.

use super::{ByMail, MakeNotifier, Opened, Sleep, opened};
use crate::partner::Place;
use rsevents::{AutoResetEvent, Awaitable, EventState};
use std::sync::Arc;
use std::time::Duration;

struct Waits(Arc<AutoResetEvent>);

impl Sleep for Waits {
    fn sleep(&mut self, limit: Duration, _: &dyn Fn() -> bool) -> bool {
        self.0.wait_for(limit)
    }
}

pub fn auto_reset(_: Place, notifiers: usize) -> Result<Opened, String> {
    let event = Arc::new(AutoResetEvent::new(EventState::Unset));
    let same = Arc::clone(&event);
    let make = move |_| {
        let event = Arc::clone(&same);
        let notifier: MakeNotifier = Box::new(move || Box::new(move || event.set()));
        notifier
    };
    Ok(opened(notifiers, make, move || ByMail(Waits(event))))
}

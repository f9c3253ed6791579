// SPDX-License-Identifier: MIT OR Apache-2.0
//! rsevents' event that resets itself: set before a wait, it ends the next one.

use super::{Opened, by_mail, each, opened};
use crate::partner::Place;
use rsevents::{AutoResetEvent, Awaitable, EventState};
use std::sync::Arc;

pub fn auto_reset(_: Place, notifiers: usize) -> Result<Opened, String> {
    let event = Arc::new(AutoResetEvent::new(EventState::Unset));
    let notify = each(Arc::clone(&event), |event| event.set());
    Ok(opened(notifiers, notify, move || by_mail(move |limit, _| event.wait_for(limit))))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! event-listener: listen, look again, wait. It wakes who listens,
//! and remembers nothing for who does not.

use super::{Opened, by_mail, each, opened};
use crate::partner::Place;
use event_listener::{Event, Listener};
use std::sync::Arc;

pub fn notify(_: Place, notifiers: usize) -> Result<Opened, String> {
    let event = Arc::new(Event::new());
    let notify = each(Arc::clone(&event), |event| {
        event.notify(1);
    });
    Ok(opened(notifiers, notify, move || {
        by_mail(move |limit, ready| {
            let listener = event.listen();
            ready() || listener.wait_timeout(limit).is_some()
        })
    }))
}

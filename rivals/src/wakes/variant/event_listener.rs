// SPDX-License-Identifier: MIT OR Apache-2.0
//! event-listener: listen, look again, wait. It wakes who listens,
//! and remembers nothing for who does not.

use super::{ByMail, MakeNotifier, Opened, Sleep, opened};
use crate::partner::Place;
use event_listener::{Event, Listener};
use std::sync::Arc;
use std::time::Duration;

struct Listens(Arc<Event>);

impl Sleep for Listens {
    fn sleep(&mut self, limit: Duration, ready: &dyn Fn() -> bool) -> bool {
        let listener = self.0.listen();
        ready() || listener.wait_timeout(limit).is_some()
    }
}

pub fn notify(_: Place, notifiers: usize) -> Result<Opened, String> {
    let event = Arc::new(Event::new());
    let same = Arc::clone(&event);
    let make = move |_| {
        let event = Arc::clone(&same);
        let notifier: MakeNotifier = Box::new(move || {
            Box::new(move || {
                event.notify(1);
            })
        });
        notifier
    };
    Ok(opened(notifiers, make, move || ByMail(Listens(event))))
}

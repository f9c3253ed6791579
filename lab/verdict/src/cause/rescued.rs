// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notification did not end the wait; the wait ran out, and the message was found then.

use super::{Cause, whole};
use doorbell_results::about::About;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "rescued by the time-out",
        what: "The wake-up was lost: the waiter slept until its time-out, and the message was there already.",
        taken: "The waiter says that its wait ran out and that a message was there.",
        misleads: "A time-out that ends while the notification is under way looks the same.",
    },
    cure: "the wake-up was lost: look for a notifier that tests for a sleeper before it publishes \
        (`doorbell model`)",
    by_events: false,
    find: |wake| {
        let (from, to) = whole(wake);
        wake.rescued
            .then(|| (to.abs_diff(from), "the wait ran out, and the message was there already".to_owned()))
    },
};

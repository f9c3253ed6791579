// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notification did not end the wait; the wait ran out, and the message was found then.

use super::{Cause, whole};

pub(super) const CAUSE: Cause = Cause {
    name: "rescued by the time-out",
    cure: "the wake-up was lost: look for a notifier that tests for a sleeper before it publishes (`doorbell model`)",
    by_events: false,
    find: |wake| {
        let (from, to) = whole(wake);
        wake.rescued
            .then(|| (to.abs_diff(from), "the wait ran out, and the message was there already".to_owned()))
    },
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races that are the same whatever the waiter sleeps on, by notifiers with the steps `N` and waiters
//! with the steps `W`.

use super::platform::{Bell, Impatient, Means, race};
use crate::wake::{Complete, Steps, Waiter, wait_until};

pub(super) fn publish_and_wait<M: Means, N: Steps, W: Steps>() {
    race(Bell::new(), [Bell::publish::<N>], |bell| bell.wait::<M, W>(1));
}

/// Two messages taken one after the other.
pub(super) fn publish_twice_and_wait_twice<M: Means, N: Steps, W: Steps>() {
    race(Bell::new(), [Bell::publish_twice::<N>], |bell| {
        bell.wait::<M, W>(1);
        bell.wait::<M, W>(2);
    });
}

pub(super) fn timeout_and_publish_and_wait_again<M: Means>() {
    race(Bell::new(), [Bell::publish::<Complete>], |bell| {
        let mut waiters = [Waiter::new(&bell.words, M::SLOT)];
        let mut sleeper = Impatient(M::sleeper(bell), true);
        let mut wait = || wait_until(&mut waiters, &mut sleeper, || bell.has(1)).unwrap().ready;
        assert!(wait() || wait());
    });
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a notifier lets a gap pass.

use std::time::Duration;

use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};

/// How early a sleeping notifier gets up to spin the rest of a gap: longer
/// than a timer wake-up is late on most machines (50 µs is the kernel's
/// default timer slack), so that the due time is met and not overslept.
const EARLY: Duration = Duration::from_micros(150);

/// Lets time pass until `due`.
///
/// A notifier on a core of its own sleeps through the long part of a gap and spins the rest, so
/// that it notifies from a running core, at the due time. On the waiter's core it must sleep:
/// spinning there would keep the waiter from falling asleep, which is the state to be measured.
#[inline]
pub(crate) fn pause_until(clock: Clock, due: Ticks, shares_core: bool) {
    let early = if shares_core { 0 } else { clock.ticks(EARLY) };
    let now = clock.now();
    if due > now.saturating_add(early) {
        std::thread::sleep(Duration::from_nanos(clock.ps(due - now - early) / 1000));
    }
    while clock.now() < due {
        if shares_core {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

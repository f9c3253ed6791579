// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning as long as it pays, then sleeping on the futex.

use super::{Wait, WaitEntry, futex};
use crate::calibrate::sleep_cost;
use crate::cpu::cpu_mark;
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::window::Window;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The default. Learns from its own waits how long to spin before it sleeps.
///
/// - The most it spins is the price of a sleep on this machine, read from the
///   [profile](crate::profile), or, where there is none, measured once per process: at its first
///   wait that finds nothing, which takes some 5 ms and a thread for as long.
/// - It does not spin at all while the last notifier that had to wake it did so on the CPU the
///   waiter itself runs on: spinning there only keeps the notifier from running.
/// - It does not spin while its [partner](super::Listener::set_partner) sleeps: nobody is awake to
///   ring.
///
/// How it learns is told in [`doorbell_core::window`].
#[derive(Clone, Debug, Default)]
pub struct Adaptive {
    /// Made at the first wait that finds nothing: who never waits never asks what a sleep costs.
    window: Option<Window>,
    /// Was the last wait a sleep? Then whoever ended it left the number of its CPU.
    was_woken: bool,
    /// Was the notifier that last woke this waiter on the waiter's CPU?
    shares_cpu: bool,
}

/// Looks before the first glance at the clock, which costs as much as several looks: an answer that
/// is under way already comes within these.
const LOOKS_PER_GLANCE: u32 = 32;

impl Wait for Adaptive {
    const NAME: &'static str = "adaptive";
    const MOST_BELLS: usize = super::MOST_FUTEXES;

    #[inline]
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        self.wait_and_sleep(entries, ready, deadline, futex::sleep)
    }
}

impl Adaptive {
    /// Spins as long as it pays, and then sleeps by `sleep`.
    #[inline]
    pub(crate) fn wait_and_sleep<'a, R: FnMut() -> bool>(
        &mut self,
        entries: &mut [WaitEntry<'a>],
        mut ready: R,
        deadline: Option<Deadline>,
        sleep: impl FnOnce(&mut [WaitEntry<'a>], R, Option<Deadline>) -> Result<bool, WaitError>,
    ) -> Result<bool, WaitError> {
        if ready() {
            return Ok(true);
        }
        if self.was_woken {
            // Asked now, when nobody waits for the outcome of that wait any more.
            self.was_woken = false;
            self.shares_cpu = shares_cpu(entries);
        }
        let spinning_can_help = !self.shares_cpu && !entries.iter().all(partner_sleeps);
        let learned = self.window.get_or_insert_with(|| Window::new(sleep_cost()));
        let window = if spinning_can_help { learned.plan() } else { 0 };
        let mut start = None;
        if window > 0 {
            // Pays for most hits: no clock is read.
            if look(&mut ready) {
                for entry in entries {
                    entry.listener.counters.spun_and_hit();
                }
                learned.hit_at_once();
                return Ok(true);
            }
            let began = Instant::now();
            start = Some(began);
            let mut spun = 0;
            loop {
                if look(&mut ready) {
                    for entry in entries {
                        entry.listener.counters.spun_and_hit();
                    }
                    // As of the last glance: another would keep the caller waiting.
                    learned.spun_and_hit(spun);
                    return Ok(true);
                }
                spun = nanoseconds_since(began);
                if spun >= window {
                    break;
                }
                if deadline.is_some_and(|deadline| deadline.passed()) {
                    return Ok(ready());
                }
            }
            for entry in entries.iter() {
                entry.listener.counters.spun_in_vain();
            }
        }
        let start = start.unwrap_or_else(Instant::now);
        let ready = sleep(entries, ready, deadline)?;
        if ready {
            if spinning_can_help {
                learned.slept(nanoseconds_since(start), window);
            }
            self.was_woken = true;
        }
        Ok(ready)
    }
}

#[inline(always)]
fn look(ready: &mut impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS_PER_GLANCE {
        std::hint::spin_loop();
        if ready() {
            return true;
        }
    }
    false
}

fn nanoseconds_since(start: Instant) -> u32 {
    u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)
}

fn partner_sleeps(entry: &WaitEntry<'_>) -> bool {
    entry.listener.partner.as_ref().is_some_and(|partner| partner.record().wake.has_sleepers())
}

/// Did all who last woke somebody at `entries` do it on this CPU?
fn shares_cpu(entries: &[WaitEntry<'_>]) -> bool {
    let here = cpu_mark();
    entries.iter().all(|entry| entry.state.record().ringer_cpu.load(Ordering::Relaxed) == here)
}

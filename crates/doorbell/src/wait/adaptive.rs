// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning as long as it pays, then sleeping on the futex.

use super::{Spot, Wait, futex};
use crate::calibrate::sleep_cost;
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::window::Window;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The default. Learns from its own waits how long to spin before it sleeps.
///
/// - The most it spins is the price of a sleep on this machine, measured once per process or read from the
///   [profile](crate::profile).
/// - It does not spin at all while the last notifier that had to wake it did so on the CPU the waiter itself runs
///   on: spinning there only keeps the notifier from running.
/// - It does not spin while its [partner](super::Listener::set_partner) sleeps: nobody is awake to ring.
///
/// How it learns is told in [`doorbell_core::window`].
#[derive(Clone, Debug)]
pub struct Adaptive {
    window: Window,
    /// The CPU both sides were on when a notifier last woke this waiter, plus one; 0 if they were on different ones.
    shared_cpu: u32,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { window: Window::new(sleep_cost()), shared_cpu: 0 }
    }
}

/// Looks before the first glance at the clock, which costs as much as several looks: an answer that is under way
/// already comes within these.
const LOOKS_PER_GLANCE: u32 = 32;

impl Wait for Adaptive {
    const NAME: &'static str = "adaptive";
    const MOST_BELLS: usize = super::MOST_FUTEXES;

    #[inline]
    fn wait(
        &mut self,
        spots: &mut [Spot<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        if ready() {
            return Ok(true);
        }
        let spinning_can_help = self.shared_cpu == 0 && !spots.iter().all(partner_sleeps);
        let window = if spinning_can_help { self.window.plan() } else { 0 };
        let mut start = None;
        if window > 0 {
            // Pays for most hits: no clock is read.
            if look(&mut ready) {
                for spot in spots {
                    spot.listener.counters.spun_and_hit();
                }
                self.window.hit_at_once();
                return Ok(true);
            }
            let began = Instant::now();
            start = Some(began);
            loop {
                let hit = look(&mut ready);
                let spun = nanoseconds_since(began);
                if hit {
                    for spot in spots {
                        spot.listener.counters.spun_and_hit();
                    }
                    self.window.spun_and_hit(spun);
                    return Ok(true);
                }
                if spun >= window {
                    break;
                }
                if deadline.is_some_and(|deadline| deadline.passed()) {
                    return Ok(ready());
                }
            }
            for spot in spots.iter() {
                spot.listener.counters.spun_in_vain();
            }
        }
        let start = start.unwrap_or_else(Instant::now);
        let ready = futex::sleep(spots, ready, deadline)?;
        if ready {
            if spinning_can_help {
                self.window.slept(nanoseconds_since(start));
            }
            self.shared_cpu = shared_cpu(spots);
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

fn partner_sleeps(spot: &Spot<'_>) -> bool {
    spot.listener.partner.as_ref().is_some_and(|partner| partner.record().wake.has_sleepers())
}

/// This CPU plus one, if all who last woke somebody at `spots` did it on this CPU; else 0.
fn shared_cpu(spots: &[Spot<'_>]) -> u32 {
    let here = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0).wrapping_add(1);
    let all_here = spots.iter().all(|spot| spot.site.record().ringer_cpu.load(Ordering::Relaxed) == here);
    if all_here { here } else { 0 }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts, or work they had put off, held the CPU on which the wake was waiting.

use super::{Cause, held_ps, took, whole};
use doorbell_results::about::About;
use doorbell_results::event::What;

/// Kinds of deferred work by number (kernel include/linux/interrupt.h).
const SOFT: [&str; 10] = [
    "high",
    "timer",
    "net transmit",
    "net receive",
    "block",
    "irq poll",
    "tasklet",
    "scheduler",
    "hrtimer",
    "RCU",
];

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "interrupts",
        what: "A CPU of the wake-up was in interrupts or deferred work of them (softirqs).",
        taken: "The entries and ends of interrupts and softirqs on each CPU that a mark was passed \
            on; the CPU with the longest time counts.",
        misleads: "The interrupt that wakes the waiter is among them; how much is normal is seen \
            in quicker wake-ups.",
    },
    cure: "move interrupts off the CPUs of both sides (/proc/irq/*/smp_affinity, rcu_nocbs, nohz_full)",
    by_events: true,
    find: |wake| {
        let mut cpus: Vec<u32> = wake.marks.iter().filter_map(|passed| passed.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let on = |cpu: u32| {
            let begins = |what: &What| {
                matches!(
                    what,
                    What::InterruptTaken { .. } | What::DeviceTaken { .. } | What::SoftBegins { .. }
                )
            };
            let ends = |what: &What| {
                matches!(what, What::InterruptDone { .. } | What::DeviceDone { .. } | What::SoftDone { .. })
            };
            let ps = held_ps(
                wake,
                whole(wake),
                false,
                |event| event.cpu == cpu && begins(&event.what),
                |event| event.cpu == cpu && ends(&event.what),
            );
            let longest =
                wake.events.iter().filter(|event| event.cpu == cpu && event.at >= 0).find_map(|event| {
                    match &event.what {
                        What::InterruptTaken { name } => Some(format!("{name} interrupt")),
                        What::DeviceTaken { number } => Some(format!("interrupt {number}")),
                        What::SoftBegins { number } => {
                            let name = usize::try_from(*number).ok().and_then(|number| SOFT.get(number));
                            Some(format!("softirq {}", name.unwrap_or(&"of an unknown kind")))
                        }
                        _ => None,
                    }
                })?;
            (ps > 0).then(|| (ps, format!("CPU {cpu} was in interrupts for {} (first: {longest})", took(ps))))
        };
        cpus.into_iter().filter_map(on).max_by_key(|found| found.0)
    },
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One configuration: one means of waking, between threads or processes, with some notifiers.

use crate::partner::{Partner, Place};
use crate::wakes::burst::bursts;
use crate::wakes::probe::{Outcome, probe};
use crate::wakes::shared::Shared;
use crate::wakes::variant::{Opened, Variant};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is to be run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Configuration {
    pub round: usize,
    pub variant: String,
    pub place: Place,
    pub notifiers: usize,
    pub lasting_ms: u64,
    pub seed: u32,
}

/// Runs it for its time, or until `most` waits were not woken.
pub fn run(variant: &Variant, configuration: &Configuration, most: usize) -> Result<Outcome, String> {
    let &Configuration { place, notifiers, lasting_ms, seed, .. } = configuration;
    let lasting = Duration::from_millis(lasting_ms);
    let shared = Shared::new()?;
    let Opened { notifiers: makers, watch } = (variant.open)(place, notifiers)?;
    let start = |(number, make): (usize, crate::wakes::variant::MakeNotifier)| {
        Partner::start(place, move |desk| {
            let mut notify = make();
            desk.report([0; 8]);
            if desk.order().is_some() {
                bursts(&mut *notify, shared, number == 0, seed.wrapping_add(number as u32));
                desk.report([0; 8]);
            }
        })
    };
    let partners = makers.into_iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut result = Err("the waiter was not made".to_owned());
    watch(&mut |waiter| {
        result = (|| {
            partners.iter().try_for_each(|partner| partner.report().map(drop))?;
            partners.iter().try_for_each(|partner| partner.order([0; 8]))?;
            let outcome = probe(waiter, shared, notifiers as u64, lasting, most);
            if outcome.is_over() {
                partners.iter().try_for_each(|partner| partner.report().map(drop))?;
            }
            Ok(outcome)
        })();
    });
    if result.as_ref().is_ok_and(|outcome| !outcome.is_over()) {
        // Nobody waits for notifiers that will not end.
        std::mem::forget(partners);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wakes::probe::Ending;
    use crate::wakes::variant::variants;

    fn run_for(seconds: u64, name: &str, place: Place, notifiers: usize) -> Outcome {
        let variant = variants().into_iter().find(|variant| variant.name == name).unwrap();
        let (variant_name, lasting_ms) = (name.to_owned(), seconds * 1000);
        let configuration =
            Configuration { round: 0, variant: variant_name, place, notifiers, lasting_ms, seed: 1 };
        run(&variant, &configuration, 1).unwrap()
    }

    /// A minute is far more than it takes: the first that is found ends it.
    fn run_until_found(name: &str, place: Place, notifiers: usize) -> Outcome {
        run_for(60, name, place, notifiers)
    }

    /// The order of the mistake that the stress looks for above all.
    #[test]
    fn a_waiter_that_rearms_before_it_consumes_is_found_and_nothing_wakes_it() {
        for place in [Place::Threads, Place::Processes] {
            let outcome = run_until_found("planted: re-arms before it consumes", place, 3);
            let [found] = &outcome.unwoken[..] else { panic!("{outcome:?}") };
            assert_eq!(found.ending, Ending::ByHand, "{found:?}");
            assert_eq!(
                (&*found.further_waits, &*found.further_notifications),
                (&[false; 3][..], &[false; 3][..])
            );
            assert!(found.pending > 0 && found.found_by_hand >= found.pending, "{found:?}");
            assert_eq!(outcome.sent, outcome.seen);
        }
    }

    #[test]
    fn a_wake_that_is_left_out_is_found_and_the_next_notification_ends_it() {
        for place in [Place::Threads, Place::Processes] {
            let outcome = run_until_found("planted: forgets one wake-up of 500", place, 1);
            let [found] = &outcome.unwoken[..] else { panic!("{outcome:?}") };
            assert_eq!(found.ending, Ending::FurtherNotification, "{found:?}");
            assert_eq!(
                (&*found.further_waits, &*found.further_notifications),
                (&[false; 3][..], &[true][..])
            );
            assert_eq!(outcome.sent, outcome.seen);
        }
    }

    #[test]
    fn of_a_means_without_a_mistake_every_notification_is_seen_and_every_wait_is_woken() {
        for place in [Place::Threads, Place::Processes] {
            let outcome = run_for(1, "eventfd as semaphore, epoll", place, 3);
            assert!(outcome.unwoken.is_empty() && outcome.stalled == 0, "{outcome:?}");
            assert!(outcome.sent > 0 && outcome.sent == outcome.seen, "{outcome:?}");
        }
    }
}

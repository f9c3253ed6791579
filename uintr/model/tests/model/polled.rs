// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers without a handler: right without a hazard, wrong with
//! each, and wrong in the way the hazard says.

use doorbell_uintr::model::polled::{
    Config, DEADLOCK, Hazard, ReplayError, SLEEPS, UNREACHABLE, UNTOLD, replay,
};
use doorbell_uintr::model::{Configuration, Mistake, Verdict, check};

#[test]
fn whoever_waits_is_woken_in_every_configuration() {
    for &config in Config::ALL {
        let outcome = check(config, None);
        if let Verdict::Fault(fault) = &outcome.verdict {
            panic!("{}: {}\n{:#?}", config.name, fault.property.violation, fault.chart);
        }
        // A search that visits next to nothing proves nothing.
        assert!(outcome.states > 100, "{}: only {} states", config.name, outcome.states);
        println!("{}: {} states", config.name, outcome.states);
    }
}

#[test]
fn every_mistake_is_found_and_loses_what_it_is_known_for() {
    for &hazard in Hazard::ALL {
        let outcome = check(hazard.config(), Some(hazard));
        let Verdict::Fault(fault) = outcome.verdict else {
            panic!("{} was not found in {} states", hazard.name(), outcome.states)
        };
        let expected: &[&str] = match hazard {
            Hazard::P5 => &[DEADLOCK.name],
            Hazard::P12 => &[UNTOLD.name],
            Hazard::P3 | Hazard::P7 | Hazard::P10 => &[UNREACHABLE.name, SLEEPS.name, UNTOLD.name],
            _ => &[SLEEPS.name],
        };
        assert!(expected.contains(&fault.property.name), "{}: {fault:#?}", hazard.name());
    }
}

/// Armed on CPU 1; two vectors posted, one taken by a reader; the
/// interrupt brings the other, and nobody waits.
const TRACE: &str = "\
    a-1 [001] d.. 1.0: uintr_polled_arm: receiver=7 step=0 to=1 low=0000000000000002 requests=0\n\
    a-1 [001] d.. 1.1: uintr_polled_take: receiver=7 step=1 to=-1 low=0000000100f70001 requests=8000000000000000\n\
    a-1 [001] d.. 1.2: uintr_polled_notice: receiver=7 step=2 to=1 low=0000000100f70001 requests=10\n\
    a-1 [001] d.. 1.3: uintr_polled_rest: receiver=7 step=3 to=-1 low=0000000100f70001 requests=0\n\
    a-1 [000] d.. 1.4: uintr_polled_arm: receiver=7 step=4 to=0 low=0000000100f70003 requests=10\n\
    a-1 [000] d.. 1.5: uintr_polled_notice: receiver=7 step=5 to=0 low=0000000000f70001 requests=10\n";

#[test]
fn what_the_driver_does_is_followed_and_what_it_must_not_do_is_not() {
    let replayed = replay(TRACE).unwrap();
    assert_eq!((replayed.receivers, replayed.events["notice"]), (1, 2));
    for (what, from, to) in [
        ("an interrupt without ON", "step=2 to=1 low=0000000100f70001", "step=2 to=1 low=0000000100f70000"),
        ("an interrupt for another processor", "step=2 to=1", "step=2 to=0"),
        (
            "a request that PIR held at arming is gone",
            "step=5 to=0 low=0000000000f70001 requests=10",
            "step=5 to=0 low=0000000000f70001 requests=0",
        ),
        (
            "the interrupt brings what is armed twice",
            "uintr_polled_rest: receiver=7 step=3 to=-1",
            "uintr_polled_arm: receiver=7 step=3 to=1",
        ),
        ("armed, it has SN", "step=1 to=-1 low=0000000100f70001", "step=1 to=-1 low=0000000100f70003"),
        ("a reader takes two requests", "requests=8000000000000000", "requests=8000000000000010"),
    ] {
        let wrong = TRACE.replace(from, to);
        assert!(wrong != TRACE, "{what}");
        assert!(matches!(replay(&wrong), Err(ReplayError::Forbidden { .. })), "{what}: {:?}", replay(&wrong));
    }
    let hole = TRACE.replace("step=5", "step=6");
    assert_eq!(replay(&hole), Err(ReplayError::Missing { receiver: 7, step: 5 }));
    assert!(replay(&TRACE.replace("requests=8000000000000000", "requests=8")).is_ok());
    assert!(matches!(
        replay(&TRACE.replace("step=0 to=1", "step=0 to=2")),
        Err(ReplayError::TooLarge { .. })
    ));
    assert!(matches!(replay(&TRACE.replace("low=0000000000000002", "low=x")), Err(ReplayError::Garbled(_))));
}

/// Throttled with a notification under way; the timer takes what was posted meanwhile.
const THROTTLED: &str = "\
    a-1 [001] d.. 1.0: uintr_polled_arm: receiver=7 step=0 to=1 low=0000000000000002 requests=0\n\
    a-1 [001] d.. 1.1: uintr_polled_throttle: receiver=7 step=1 to=1 low=0000000100f70001 requests=0\n\
    a-1 [001] d.. 1.2: uintr_polled_unthrottle: receiver=7 step=2 to=1 low=0000000100f70003 requests=18\n\
    a-1 [001] d.. 1.3: uintr_polled_notice: receiver=7 step=3 to=1 low=0000000100f70001 requests=8\n";

#[test]
fn a_receiver_that_the_driver_throttles_is_looked_at_before_it_is_interrupted_for_again() {
    assert_eq!(replay(THROTTLED).unwrap().events["unthrottle"], 1);
    for (what, from, to) in [
        ("it is noticed while throttled", "polled_unthrottle", "polled_notice"),
        ("throttled twice", "polled_unthrottle", "polled_throttle"),
        ("not throttled, it is armed by the timer", "polled_throttle", "polled_take"),
        ("the timer finds SN clear", "low=0000000100f70003", "low=0000000100f70001"),
    ] {
        let wrong = THROTTLED.replace(from, to);
        assert!(wrong != THROTTLED, "{what}");
        assert!(matches!(replay(&wrong), Err(ReplayError::Forbidden { .. })), "{what}: {:?}", replay(&wrong));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers without a handler: right without a hazard, wrong with each, and wrong in the way the hazard says.

use doorbell_uintr::model::polled::{Config, DEADLOCK, Hazard, SLEEPS, UNREACHABLE, UNTOLD, check};
use doorbell_uintr::model::{Chart, Verdict};

#[test]
fn whoever_waits_is_woken_in_every_configuration() {
    for config in Config::ALL {
        let outcome = check(config, None);
        if let Verdict::Fault(fault) = &outcome.verdict {
            panic!("{}: {}\n{:#?}", config.name, fault.property.violation, fault.chart);
        }
        // A search that visits next to nothing proves nothing.
        assert!(outcome.states > 100, "{}: only {} states", config.name, outcome.states);
        println!("{}: {} states", config.name, outcome.states);
    }
}

fn faulty(hazard: Hazard) -> (&'static str, Chart) {
    let outcome = check(hazard.config(), Some(hazard));
    match outcome.verdict {
        Verdict::Fault(fault) => (fault.property.name, fault.chart),
        Verdict::Clean => panic!("{} was not found in {} states", hazard.name(), outcome.states),
    }
}

#[test]
fn every_mistake_is_found_and_loses_what_it_is_known_for() {
    for &hazard in Hazard::ALL {
        let (property, chart) = faulty(hazard);
        println!(
            "{}: {property}: {:#?}",
            hazard.name(),
            chart.steps.iter().map(|s| &s.text).collect::<Vec<_>>()
        );
        let expected: &[&str] = match hazard {
            Hazard::P5 => &[DEADLOCK.name],
            Hazard::P12 => &[UNTOLD.name],
            Hazard::P3 | Hazard::P7 | Hazard::P10 => &[UNREACHABLE.name, SLEEPS.name, UNTOLD.name],
            _ => &[SLEEPS.name],
        };
        assert!(expected.contains(&property), "{}: {property}: {chart:#?}", hazard.name());
    }
}

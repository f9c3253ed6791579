// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine with user interrupts: right without a hazard, wrong
//! with each, and wrong in the way the hazard says.

use doorbell_uintr::model::uintr::{Config, Hazard, ITEM_LEFT, Interference, SLEEPS_FOREVER, UNDELIVERED};
use doorbell_uintr::model::{Chart, Configuration, Mistake, Verdict, check, search::NEVER_RESTS};

fn clean(config: Config) {
    let began = std::time::Instant::now();
    let outcome = check(config, None);
    if let Verdict::Fault(fault) = &outcome.verdict {
        panic!("{}: {}\n{:#?}", config.name, fault.property.violation, fault.chart);
    }
    // A search that visits next to nothing proves nothing.
    assert!(outcome.states > 1000, "{}: only {} states", config.name, outcome.states);
    println!("{}: {} states in {:.1?}", config.name, outcome.states, began.elapsed());
}

/// One test for all, so that they do not share the processors with each other.
#[test]
fn the_correct_protocol_has_no_fault_in_any_small_configuration() {
    for &config in Config::ALL {
        clean(config);
    }
}

#[test]
fn two_receivers_two_senders_and_two_vectors_are_right_without_interference_and_with_one_preemption_or_revocation()
 {
    let full = |limit, posts| {
        let interference = Interference { limit: Some(limit), ..Config::FULL.interference };
        Config { posts, interference, ..Config::FULL }
    };
    clean(full(0, 2));
    clean(full(1, 1));
}

fn faulty(config: Config, hazard: Hazard) -> (usize, &'static str, Chart) {
    let outcome = check(config, Some(hazard));
    match outcome.verdict {
        Verdict::Fault(fault) => (outcome.states, fault.property.name, fault.chart),
        Verdict::Clean => {
            panic!("{}: {} was not found in {} states", config.name, hazard.name(), outcome.states)
        }
    }
}

/// The property that each is known to break.
fn known_for(hazard: Hazard) -> &'static str {
    use Hazard::*;
    let known: [(&str, &[Hazard]); 10] = [
        (UNDELIVERED.name, &[H1, H2, H3, H9, H12, H38, H40, H41]),
        (
            SLEEPS_FOREVER.name,
            &[H4, H5, H10, H15, H18, H26, H27, H30, H31, H32, H33, H35, H39, H42, H44, H45],
        ),
        (NEVER_RESTS.name, &[H6, H36, H43, H46]),
        ("restores", &[H7]),
        ("sends", &[H8, H17]),
        ("table", &[H11]),
        ("memory", &[H13, H14, H34, H47]),
        (ITEM_LEFT.name, &[H19, H29]),
        ("tick", &[H20]),
        ("handler", &[H37]),
    ];
    let found = known.into_iter().find(|(_, hazards)| hazards.contains(&hazard));
    found.unwrap_or_else(|| panic!("nobody says what {} breaks", hazard.name())).0
}

#[test]
fn every_hazard_is_found_and_shows_what_it_is_known_for() {
    for &hazard in Hazard::ALL {
        let (_, property, chart) = faulty(hazard.config(), hazard);
        assert_eq!(property, known_for(hazard), "{}: {:#?}", hazard.name(), chart);
        assert!(!chart.steps.is_empty() && chart.lanes.len() >= 2, "{}", hazard.name());
        for step in &chart.steps {
            assert!(step.from < chart.lanes.len() && step.to.is_none_or(|to| to < chart.lanes.len()));
        }
    }
}

/// A second receiver, and less interference, hide none of them.
#[test]
fn the_drivers_hazards_are_found_with_two_receivers_as_well() {
    for (config, hazards) in [
        (Config::DRIVER_SHARED, &[Hazard::H5, Hazard::H26][..]),
        (Config::DRIVER_SHARED_LIFE_CYCLE, &[Hazard::H34, Hazard::H37]),
        (Config::DRIVER_SHARED_HOT_PLUG, &[Hazard::H30]),
        (Config::DRIVER_SHARED_RUNNING, &[Hazard::H12, Hazard::H38]),
        (Config::DRIVER_SHARED_DESCRIPTOR, &[Hazard::H31, Hazard::H32, Hazard::H33]),
        (Config::DRIVER_SHARED_STACK, &[Hazard::H36]),
        (Config::DRIVER_SHARED_CALLS, &[Hazard::H43]),
        (Config::DRIVER_SHARED_TIMER, &[Hazard::H39]),
    ] {
        for &hazard in hazards {
            let (states, property, _) = faulty(config, hazard);
            assert_eq!(property, known_for(hazard), "{}: {}", config.name, hazard.name());
            println!("{}: {} in {states} states", config.name, hazard.name());
        }
    }
}

#[test]
fn a_handler_between_the_look_and_the_sleep_is_slept_on_beside_a_descriptor_too() {
    let (_, property, _) = faulty(Config::DRIVER_DESCRIPTOR, Hazard::H4);
    assert_eq!(property, SLEEPS_FOREVER.name);
}

/// The diary, 10 July: the receiver has gone to another core, where UIF is 0.
#[test]
fn a_flag_left_behind_is_shown_with_the_switch_that_left_it() {
    let (_, _, chart) = faulty(Hazard::H1.config(), Hazard::H1);
    let words: Vec<&str> = chart.steps.iter().map(|step| step.text.as_str()).collect();
    let stui = words.iter().position(|w| *w == "STUI").expect("the flag was set");
    let back = words
        .iter()
        .rposition(|w| w.starts_with("switches in") && w.ends_with("UIF 0"))
        .expect("and is clear");
    assert!(stui < back, "{words:#?}");
}

/// The diary, 10 July: "wait upid status: 1", "going to sleep", "ifsend: 0".
#[test]
fn the_wait_call_that_does_not_look_goes_to_sleep_with_on_set() {
    let (_, _, chart) = faulty(Hazard::H5.config(), Hazard::H5);
    assert!(
        chart.steps.iter().any(|step| step.text.contains("does not look") && step.text.contains("ON 1")),
        "{chart:#?}"
    );
}

#[test]
fn the_same_search_gives_the_same_chart() {
    let search = || faulty(Hazard::H15.config(), Hazard::H15);
    assert_eq!(search(), search());
}

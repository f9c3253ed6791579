// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futex, eventfd and bell: right without a hazard, wrong with each.

use doorbell_uintr::report::{Mechanism, correct, hazard, list};
use doorbell_uintr::view::Glyphs;

const OTHERS: [Mechanism; 4] =
    [Mechanism::Futex, Mechanism::Eventfd, Mechanism::Bell, Mechanism::MachSemaphore];

#[test]
fn each_is_right_without_a_hazard() {
    for mechanism in OTHERS {
        let answer = correct(mechanism, false);
        assert!(answer.expected && answer.chart.is_none(), "{}", answer.text);
    }
}

#[test]
fn each_hazard_is_found() {
    for mechanism in OTHERS {
        for entry in mechanism.hazards() {
            let answer = hazard(mechanism, entry.name, Glyphs::Unicode).unwrap();
            assert!(answer.expected, "{}", answer.text);
            assert!(answer.chart.is_some_and(|chart| chart.steps.len() > 1), "{}", answer.text);
        }
    }
}

/// Without a fence the fault must come from a load that passed a
/// store, for nothing else is left out.
#[test]
fn a_missing_fence_shows_as_a_load_before_its_time() {
    for (mechanism, name) in [(Mechanism::Bell, "B1"), (Mechanism::Bell, "B2"), (Mechanism::Eventfd, "E6")] {
        let text = hazard(mechanism, name, Glyphs::Ascii).unwrap().text;
        assert!(text.contains("before the store ahead of it"), "{text}");
    }
}

#[test]
fn the_list_names_every_hazard_and_tells_the_diary() {
    for mechanism in Mechanism::ALL {
        let text = list(mechanism);
        for entry in mechanism.hazards() {
            assert!(text.contains(entry.name) && text.contains(entry.title));
        }
    }
    let text = list(Mechanism::Uintr);
    for word in ["uif zero", "ifsend: 0", "nv: 0", "time-out of 100 us", "H25", "H28"] {
        assert!(text.contains(word), "{word}");
    }
}

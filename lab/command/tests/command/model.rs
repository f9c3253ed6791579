// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell model` as a user meets it.

use crate::stage::{Said, Stage};

fn model(words: &str) -> Said {
    Stage::new().run(&format!("model {words}"))
}

#[test]
fn a_right_protocol_is_said_to_be_right_with_the_number_of_states() {
    for mechanism in ["futex", "eventfd", "bell"] {
        let text = model(mechanism).ended(0).out;
        assert!(text.starts_with(&format!("{mechanism}: no fault found in ")), "{text}");
    }
}

#[test]
fn a_hazard_ends_in_a_chart_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h4.svg");
    let text = model(&format!("uintr --hazard h4 --ascii --svg {}", file.display())).ended(0).out;
    assert!(text.is_ascii() && text.contains("In the end: the receiver sleeps for ever"), "{text}");
    assert!(std::fs::read_to_string(file).unwrap().starts_with("<svg "));
}

#[test]
fn the_list_tells_the_diary_and_an_unknown_hazard_is_told_the_known_ones() {
    let text = model("uintr --hazard list").ended(0).out;
    assert!(text.contains("H8") && text.contains("nv: 0"), "{text}");
    let error = model("bell --hazard H4").ended(2).err;
    assert!(error.contains("B1, B2"), "{error}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell model` as a user meets it.

use assert_cmd::Command;

fn doorbell(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("doorbell").unwrap().arg("model").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_right_protocol_is_said_to_be_right_with_the_number_of_states() {
    for mechanism in ["futex", "eventfd", "bell"] {
        let (status, text, _) = doorbell(&[mechanism]);
        assert_eq!(status, 0);
        assert!(text.starts_with(&format!("{mechanism}: no fault found in ")), "{text}");
    }
}

#[test]
fn a_hazard_ends_in_a_chart_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h4.svg");
    let (status, text, _) =
        doorbell(&["uintr", "--hazard", "h4", "--ascii", "--svg", file.to_str().unwrap()]);
    assert_eq!(status, 0, "{text}");
    assert!(text.is_ascii() && text.contains("In the end: the receiver sleeps for ever"), "{text}");
    assert!(std::fs::read_to_string(file).unwrap().starts_with("<svg "));
}

#[test]
fn the_list_tells_the_diary() {
    let (status, text, _) = doorbell(&["uintr", "--hazard", "list"]);
    assert_eq!(status, 0);
    assert!(text.contains("H8") && text.contains("nv: 0"), "{text}");
}

#[test]
fn an_unknown_hazard_is_wrong_usage_and_told_the_known_ones() {
    let (status, _, error) = doorbell(&["bell", "--hazard", "H4"]);
    assert_eq!(status, 2);
    assert!(error.contains("B1, B2"), "{error}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of results: the schema describes them, the verbs that read them say what they found.

use assert_cmd::Command;

fn doorbell(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("doorbell").unwrap();
    command.args(arguments);
    command
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = doorbell(arguments).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

#[test]
fn a_result_that_was_measured_satisfies_the_schema_that_is_printed() {
    let validator = jsonschema::validator_for(&json(&["schema"])).unwrap();
    let result = json(&["ping", "eventfd", "--gap", "0,10us", "--count", "50", "--blocks", "1", "--json"]);
    let errors: Vec<String> = validator.iter_errors(&result).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    assert!(!result["records"].as_array().unwrap().is_empty());
}

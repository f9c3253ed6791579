// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for messages over loopback as a user runs it.

use serde_json::Value;

use crate::stage::Stage;

/// A client that asked after the last event once hung: the server,
/// and the thread in it that answers, had left.
#[test]
fn every_way_to_wait_for_a_message_ends_with_every_event_seen_or_with_a_reason() {
    let stage = Stage::new();
    let words = ["io", "--net", "--count", "20", "--gap", "1ms", "--blocks", "2", "--quiet", "--output", "-"];
    let output = stage.doorbell(&words).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    for record in result["records"].as_array().unwrap() {
        let (way, outcome) = (&record["configuration"]["subject"], &record["outcome"]);
        match outcome["kind"].as_str().unwrap() {
            // The harness itself: nobody waits.
            "done" if way == "null" => {}
            // A busy machine may make figures doubtful, which this does not judge.
            "done" | "implausible" => {
                assert_eq!(record["tally"]["seen"], record["tally"]["sent"], "{way}: {outcome}")
            }
            "skipped" => assert_ne!(outcome["reason"], "", "{way}"),
            _ => panic!("{way}: {outcome}"),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for messages over loopback as a user runs it.

use crate::stage::Stage;

/// A client that asked after the last event once hung: the server,
/// and the thread in it that answers, had left.
#[test]
fn every_way_to_wait_for_a_message_ends_with_every_event_seen_or_with_a_reason() {
    let words = "io --net --count 20 --gap 1ms --blocks 2 --quiet --output -";
    for record in Stage::new().run(words).records() {
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

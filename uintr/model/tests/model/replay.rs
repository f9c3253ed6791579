// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine follows what the driver did, and does not follow what it did not do.

use doorbell_uintr::model::uintr::{ReplayError, replay};

/// The first steps of two receivers under `uintr/driver/tests/storm`
/// in a guest with two processors (Linux 6.12).
const RECORDED: &str = include_str!("driver.trace");

fn lines() -> Vec<String> {
    RECORDED.lines().filter(|line| line.contains(": uintr_")).map(str::to_owned).collect()
}

/// The trace with the first line of that event changed for which
/// there is a change; `None` if there is none.
fn with(event: &str, change: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut lines = lines();
    let name = format!(": uintr_{event}: ");
    let (at, changed) = (10..lines.len())
        .filter(|&at| lines[at].contains(&name))
        .find_map(|at| Some((at, change(&lines[at])?)))?;
    lines[at] = changed;
    Some(lines.join("\n"))
}

#[track_caller]
fn forbidden(what: &str, trace: Option<String>) {
    let trace = trace.unwrap_or_else(|| panic!("{what}: the recorded trace has no such line"));
    match replay(&trace) {
        Err(ReplayError::Forbidden { states, .. }) => assert!(states > 0, "{what}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn a_recorded_trace_is_allowed() {
    let replayed = replay(RECORDED).unwrap();
    assert_eq!(replayed.receivers, 2);
    assert_eq!(replayed.events.values().sum::<u64>(), lines().len() as u64);
    // Every way to leave the list, and states that were really open.
    assert!(["wake", "rise"].iter().all(|event| replayed.events[event] > 10));
    assert!(replayed.widest > 8);
}

#[test]
fn what_the_driver_must_not_do_is_forbidden() {
    for (what, event, from, to) in [
        ("UIRR invented", "in", " pir=0 uirr=0 ", " pir=0 uirr=8000000000000000 "),
        ("UIF lost at a switch (H1)", "in", "uif=1", "uif=0"),
        ("UIF leaked at a switch (H1)", "in", "uif=0", "uif=1"),
        ("SN clear while it was off its processor (H9)", "in", "f00002", "f00000"),
        ("SN set while it ran", "out", "f00000 ", "f00002 "),
        ("it sleeps with ON set (H5)", "sleep", "f70000 ", "f70001 "),
        ("it sleeps with the notification's vector (H26)", "sleep", "f70000 ", "f00000 "),
        ("it sleeps suppressed", "sleep", "f70000 ", "f70002 "),
        ("it sleeps where the interrupt does not go (H27)", "sleep", "low=0000010000f7", "low=0000000000f7"),
        ("it was woken without a notification", "wake", "f70001 ", "f70000 "),
        ("it was woken by another processor's interrupt", "wake", "to=0", "to=1"),
        ("it was woken by the first processor's interrupt", "wake", "to=1", "to=0"),
    ] {
        let swapped = with(event, |line| line.contains(from).then(|| line.replacen(from, to, 1)));
        forbidden(what, swapped);
    }
    for (what, lost) in
        [("a post lost between PIR and UIRR (H10)", true), ("a request dropped at a switch (H15)", false)]
    {
        let of_interest =
            |line: &str| line.contains(" pir=0 ") != lost && (lost || !line.contains(" uirr=0 "));
        forbidden(what, with("in", |line| of_interest(line).then(|| zero(line, "uirr"))));
    }
    forbidden("it sleeps on a request in UIRR (H4)", {
        let mut trace = lines();
        let at = (10..trace.len() - 1)
            .find(|&at| trace[at].contains(": uintr_out: ") && trace[at + 1].contains(": uintr_sleep: "))
            .unwrap();
        for line in &mut trace[at..at + 2] {
            *line = line.replace("uirr=0", "uirr=8000000000000000");
        }
        Some(trace.join("\n"))
    });
}

fn zero(line: &str, field: &str) -> String {
    let words = line.split(' ').map(|word| {
        if word.starts_with(&format!("{field}=")) { format!("{field}=0") } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn steps_that_are_missing_or_too_many_are_told() {
    let mut some = lines();
    some.remove(20);
    assert!(matches!(replay(&some.join("\n")), Err(ReplayError::Missing { step: 20, .. })));
    let far = lines().join("\n").replacen("to=1", "to=7", 1);
    assert!(matches!(replay(&far), Err(ReplayError::TooLarge { .. })));
    assert!(matches!(replay("x: uintr_out: receiver=1"), Err(ReplayError::Garbled(_))));
}

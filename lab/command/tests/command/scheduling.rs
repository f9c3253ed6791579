// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run is started under is undone, or recorded and warned of; never measured in silence.

use std::process::Command;

use doorbell_results::machine::scheduling::TIMER_SLACK_NS;
use doorbell_results::record::{ResultFile, warning};

use crate::stage::{Said, Stage, with};

/// A short run, started behind `prefix`, and what it said beside its result.
fn started_under(prefix: &[&str]) -> (ResultFile, String) {
    let stage = Stage::new();
    let command = stage.words("ping futex --gap 0 --count 50 --blocks 1 --quiet --output -");
    let mut outer = Command::new(prefix[0]);
    outer.args(&prefix[1..]);
    let said = Said::by(&mut with(outer, &command)).ended(0);
    stage.wait_until_empty();
    (said.result(), said.err)
}

/// Under `chrt -b 0`, `chrt -i 0` and `nice -n 19` a run was recorded as `other`, measured under
/// what it was started under, without a warning.
#[test]
fn a_run_is_scheduled_as_its_plan_says_whatever_it_was_started_under_or_says_that_it_was_not() {
    let (usual, said) = started_under(&["env"]);
    assert!(!said.contains("was started under"), "{said}");
    assert!(usual.machine.scheduling.policy.is_some() && usual.machine.cgroup.path.is_some());
    for prefix in [&["nice", "-n", "19"][..], &["chrt", "-b", "0"], &["chrt", "-i", "0"]] {
        let (result, said) = started_under(prefix);
        let scheduling = &result.machine.scheduling;
        assert_eq!(scheduling.timer_slack_ns, Some(TIMER_SLACK_NS), "{prefix:?}");
        let unlike = scheduling.unlike(&usual.machine.scheduling);
        let warned = |result: &ResultFile| {
            result.warnings.iter().any(|warning| warning.name == warning::SCHEDULED_OTHERWISE.name)
        };
        assert_eq!(!unlike.is_empty(), warned(&result) && !warned(&usual), "{prefix:?}: {scheduling:?}");
        if result.machine.permissions.nice == Some(true) {
            // It was undone in silence.
            let policy = match prefix[1] {
                "-b" => "was started under SCHED_BATCH",
                "-i" => "was started under SCHED_IDLE",
                _ => "",
            };
            assert!(said.contains(policy), "{prefix:?}: {said}");
            assert_eq!(unlike, [[""; 2]; 0], "{prefix:?}: who may undo it has to");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command does for programs that use the library: `top` and `tune`.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use doorbell::Bell;
use doorbell::profile::Profile;
use doorbell::wait::Futex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{Said, Stage};

/// What one look finds of the waiters of this process, which is one that uses the library.
fn look(stage: &Stage) -> Value {
    stage.run(&format!("top --once --json --pid {}", std::process::id())).ended(0).json()
}

#[test]
fn top_finds_the_waiters_of_a_process_as_long_as_there_are_any() {
    let stage = Stage::new();
    let mut bell: Bell<Futex> = Bell::new().unwrap().waiting_by();
    for _ in 0..3 {
        assert_eq!(bell.wait_timeout(Duration::from_millis(1)).unwrap(), None);
    }
    let seen = look(&stage);
    let process = &seen["processes"][0];
    assert_eq!(process["pid"], std::process::id());
    let slept = |waiter: &Value| waiter["name"] == "futex" && waiter["slept"] == 3;
    assert!(process["waiters"].as_array().unwrap().iter().any(slept), "{seen}");
    let shown = stage.run("top --once").ended(0).out;
    assert!(shown.contains(&std::process::id().to_string()) && shown.contains("futex"), "{shown}");
    drop(bell);
    let seen = look(&stage);
    let waiters = seen["processes"][0]["waiters"].as_array().cloned().unwrap_or_default();
    assert!(!waiters.iter().any(slept), "{seen}");
}

#[test]
fn top_goes_on_until_it_is_told_to_end_and_then_ends_well() {
    let stage = Stage::new();
    let mut child = stage.words("top --json --interval 10ms").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let look: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert!(look["processes"].is_array());
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    // A reader that stops reading would end it too, in another way.
    while let Some(Ok(_)) = lines.next() {}
    assert!(child.wait().unwrap().success());
}

#[test]
fn list_services_shows_who_serves_whom_and_what_lies_between_them() {
    let stage = Stage::new();
    let list = |more: &str| {
        let mut command = stage.words(&format!("list-services {more}"));
        Said::by(command.env("DOORBELL_RUNTIME_DIR", stage.path())).ended(0)
    };
    // Services with clients are listed wherever they are: those of other tests too.
    let listed = || {
        let seen = list("--json").json();
        let services = seen["services"].as_array().unwrap();
        services.iter().find(|service| service["name"] == "clock").cloned().unwrap_or_default()
    };
    let mut service = doorbell::listen(stage.path().join("clock.sock")).unwrap();
    let seen = listed();
    assert_eq!(seen["pid"], std::process::id(), "{seen}");
    assert_eq!(seen["clients"], Value::Array(Vec::new()));
    let path = stage.path().join("clock.sock");
    let connecting = std::thread::spawn(move || doorbell::service::connect(path).unwrap());
    let _accepted = service.accept().unwrap();
    let mut client = connecting.join().unwrap();
    client.send(b"how late is it?").unwrap();
    client.send(b"and now?").unwrap();
    let seen = listed();
    let requests = &seen["clients"][0]["requests"];
    assert_eq!((requests["messages"].as_u64(), requests["bytes"].as_u64()), (Some(2), Some(40)), "{seen}");
    assert_eq!(seen["clients"][0]["answers"]["messages"], 0);
    assert!(list("").out.contains("clock"), "{}", list("").out);
    drop(service);
    let seen = listed();
    assert_ne!(seen["pid"], std::process::id(), "nobody listens any more: {seen}");
}

#[test]
fn tune_leaves_a_profile_that_the_library_takes_and_keeps_the_old_one_when_it_fails() {
    let stage = Stage::new();
    let path = stage.path().join("profile.toml");
    let named = path.to_str().unwrap();
    let mut command = stage.words("tune --blocks 1 --quiet");
    let said = Said::by(command.env("DOORBELL_PROFILE", named)).ended(0).out;
    let profile = Profile::read(&path).unwrap();
    assert!(profile.cost.price > 0, "{profile:?}");
    assert!(said.contains("assumed") && said.contains("programs of this user read from now on"), "{said}");
    let before = std::fs::read_to_string(&path).unwrap();

    let no = stage.file("no");
    std::fs::write(&no, "a file where a folder is needed").unwrap();
    let said = stage.run(&format!("tune --blocks 1 --quiet --profile {no}/rights")).ended(1).err;
    assert!(said.contains(&no), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

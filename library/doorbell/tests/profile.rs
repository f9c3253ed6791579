// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile is used, or the process says why not: to itself and to whoever looks at its counters.
//!
//! The process in question is this test program again: what it reckons with is settled once.

use doorbell::profile::{self, Profile, Standing};
use doorbell::{Bell, CostSource, SleepCost, calibration, counters};
use std::path::PathBuf;
use std::process::Command;

const ROLE: &str = "DOORBELL_TEST_EXPECTED";

/// Not a test: what the other process does.
#[test]
fn child() {
    let Ok(expected) = std::env::var(ROLE) else { return };
    // The table is made before the profile is asked for.
    let bell = Bell::new().unwrap().waiting_by::<doorbell::wait::Futex>();
    let seen = || counters::process(std::process::id()).unwrap().unwrap();
    assert_eq!((seen().profile, seen().cost.price), (Some(Standing::NotAsked), 0));
    let known = calibration();
    println!("{}", known.source);
    assert_eq!(format!("{:?}", known.source.standing()), expected);
    assert_eq!((seen().profile, seen().cost), (Some(known.source.standing()), known.cost));
    if let CostSource::Profile(_) = known.source {
        assert_eq!(known.cost, COST);
    } else {
        // Measured: nobody's profile says that.
        assert_ne!(known.cost, COST);
    }
    // And with the next table, for the first goes with its last waiter.
    drop(bell);
    let _bell = Bell::new().unwrap();
    assert_eq!((seen().profile, seen().cost), (Some(known.source.standing()), known.cost));
}

const COST: SleepCost = SleepCost { latency: 123_456, price: 7_654 };

fn expect(standing: Standing, named: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("DOORBELL_PROFILE", named)
        .env(ROLE, format!("{standing:?}"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

struct File(PathBuf);

impl File {
    fn with(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("doorbell-profile-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn of(machine: &str) -> Profile {
    Profile { machine: machine.into(), cost: COST, gpu: None }
}

#[test]
fn a_profile_of_this_machine_is_used() {
    let file = File::with("ours", &of(&profile::machine()).to_string());
    let said = expect(Standing::Used, file.name());
    assert!(said.contains(file.name()), "{said}");
}

#[test]
fn a_profile_of_another_machine_is_not_used_and_both_are_named() {
    let file = File::with("theirs", &of("a toaster, 1 CPUs, Linux 2.6").to_string());
    let said = expect(Standing::OtherMachine, file.name());
    assert!(said.contains("toaster") && said.contains(&profile::machine()), "{said}");
}

#[test]
fn a_profile_of_another_version_is_not_used() {
    let text = of(&profile::machine()).to_string().replace("version = 1", "version = 2");
    let file = File::with("version", &text);
    expect(Standing::OtherVersion, file.name());
}

#[test]
fn a_profile_that_is_not_understood_is_not_used_and_the_line_is_named() {
    let file = File::with("garbage", "version = 1\nsleep\n");
    let said = expect(Standing::Malformed, file.name());
    assert!(said.contains("line 2"), "{said}");
}

#[test]
fn a_price_that_cannot_be_is_not_used() {
    let text = of(&profile::machine()).to_string().replace("7654", "4000000000");
    let file = File::with("price", &text);
    let said = expect(Standing::Malformed, file.name());
    assert!(said.contains("line 4"), "{said}");
}

#[test]
fn a_profile_that_lacks_a_key_is_not_used() {
    let file = File::with("short", "version = 1\nmachine = \"here\"\n");
    let said = expect(Standing::Missing, file.name());
    assert!(said.contains("sleep_latency_ns"), "{said}");
}

#[test]
fn a_profile_that_is_named_and_not_there_is_told_and_not_passed_over_for_another() {
    let said = expect(Standing::Unreadable, "/nonexistent/profile.toml");
    assert!(said.contains("/nonexistent/profile.toml"), "{said}");
}

#[test]
fn an_empty_name_means_no_profile() {
    expect(Standing::NoFile, "");
}

/// A fork waited for the thread that read the profile, and so did every fork of the process.
#[test]
fn a_profile_that_never_ends_keeps_nobody_from_forking() {
    let fifo = std::env::temp_dir().join(format!("doorbell-profile-{}-fifo", std::process::id()));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "forking_child", "--nocapture"])
        .env("DOORBELL_PROFILE", &fifo)
        .env(FORKS, "1")
        .status();
    std::fs::remove_file(&fifo).unwrap();
    assert!(status.unwrap().success());
}

const FORKS: &str = "DOORBELL_TEST_FORKS";

/// Not a test: what the other process does.
#[test]
fn forking_child() {
    if std::env::var_os(FORKS).is_none() {
        return;
    }
    // A hang is ended by a signal, which the parent sees.
    // SAFETY: no precondition.
    unsafe { libc::alarm(60) };
    let reader = std::thread::spawn(|| calibration().source.standing());
    let fifo = PathBuf::from(std::env::var_os("DOORBELL_PROFILE").unwrap());
    // Opens only when the reader has: from here on the thread is in the middle of its calibration.
    let writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    // SAFETY: the child makes a bell, which takes the locks that a fork waits for, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no precondition.
        unsafe { libc::alarm(60) };
        let bell = Bell::new().unwrap().waiting_by::<doorbell::wait::Futex>();
        drop(bell);
        // SAFETY: no precondition.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a child of ours, and a valid place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    // An empty profile is no profile: the reader says so and measures.
    drop(writer);
    assert_eq!(reader.join().unwrap(), Standing::Missing);
}

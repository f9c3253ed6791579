// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile is used, or the process says why not: to itself and to whoever looks at its counters.
//!
//! The process in question is this test program again: what it reckons with is settled once.

#[path = "common/child.rs"]
mod child;

use child::{by_fork, in_a_child};
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
fn a_profile_is_used_or_it_is_said_why_not() {
    let (ours, theirs) =
        (of(&profile::machine()).to_string(), of("a toaster, 1 CPUs, Linux 2.6").to_string());
    let machine = profile::machine();
    let impossible = ours.replace("7654", "4000000000");
    for (name, text, standing, said) in [
        ("ours", &*ours, Standing::Used, ""),
        ("of another machine", &theirs, Standing::OtherMachine, "toaster"),
        ("of another machine than this", &theirs, Standing::OtherMachine, &machine),
        ("version", &ours.replace("version = 1", "version = 2"), Standing::OtherVersion, ""),
        ("not understood", "version = 1\nsleep\n", Standing::Malformed, "line 2"),
        ("a price that cannot be", &impossible, Standing::Malformed, "line 4"),
        ("lacks a key", "version = 1\nmachine = \"here\"\n", Standing::Missing, "sleep_latency_ns"),
    ] {
        let file = File::with(name, text);
        let told = expect(standing, file.name());
        assert!(told.contains(said), "{name}: {told}");
        assert!(standing != Standing::Used || told.contains(file.name()), "{name}: {told}");
    }
    // One that is named is not passed over for another; an empty name means none.
    let told = expect(Standing::Unreadable, "/nonexistent/profile.toml");
    assert!(told.contains("/nonexistent/profile.toml"), "{told}");
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
    assert!(in_a_child(by_fork, || {
        drop(Bell::new().unwrap().waiting_by::<doorbell::wait::Futex>());
        true
    }));
    // An empty profile is no profile: the reader says so and measures.
    drop(writer);
    assert_eq!(reader.join().unwrap(), Standing::Missing);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell vm` with a script in the place of the emulator: what is
//! refused before it starts, what comes home, and that nothing outlives
//! the command. The guests themselves are booted by `ci/test/65-vm.sh`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use doorbell_vm::channel::{Frame, send_file};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Said, Stage, data, wait_until, with};

/// A script that is asked what it is, and else plays a guest.
const EMULATOR: &str = r#"#!/bin/bash
case "$*" in
    --version) echo 'QEMU emulator version 0.1 (a script)'; exit ;;
    '-sandbox on '*) exit 1 ;;
    '-chardev '*' --version') exit ;;
    '-device rv64-riscv-cpu,help') exit 1 ;;
    '-machine none -cpu help') echo 'Recognized CPUID flags: fpu vme'; exit ;;
    '-L help') exit ;;
esac
touch "$here/started"
for word in "$@"; do
    case $word in
        file,id=*,path=/proc/self/fd/*,input-path=/proc/self/fd/*)
            out=${word#*,path=*/fd/} port=${word#file,id=} port=${port%%,*}
            eval "$port=${out%%,*} ${port}_in=${word##*/}"
            ;;
    esac
done
cat "$here/up" >&"$channel"
"#;

fn with_guest(stage: &Stage, script: &str) {
    let qemu = stage.path().join("qemu");
    // Written by another process: were it open for writing here, a sibling test that forks just then
    // would carry it along, and running it would fail with "text file busy".
    // It is run by its number, and not by its name.
    let text = EMULATOR.replace("\ntouch", &format!("\nhere='{}'\ntouch", stage.path().display())) + script;
    let write = r#"printf %s "$1" >"$0" && chmod 755 "$0""#;
    let written = Command::new("sh").args(["-c", write]).arg(&qemu).arg(text).status();
    assert!(written.unwrap().success());
    fs::write(stage.path().join("up"), Frame::Up.encode()).unwrap();
    // The superuser's emulator is nobody's, and this one writes into its folder.
    fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for (part, file) in [("kernel-6.1", "boot/vmlinuz-0"), ("shell", "bin/busybox")] {
        let vm = stage.path().join("cache/doorbell/vm");
        let file = vm.join("packages").join(part).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
        fs::create_dir_all(vm.join("chosen")).unwrap();
        fs::write(vm.join("chosen").join(part), part).unwrap();
    }
}

/// A guest that sends `frames`, after `first`.
fn that_sends(stage: &Stage, first: &str, frames: &[Frame]) {
    with_guest(stage, &format!("{first}\ncat \"$here/end\" >&\"$channel\""));
    let end = frames.iter().flat_map(Frame::encode).collect::<Vec<u8>>();
    fs::write(stage.path().join("end"), end).unwrap();
}

fn vm_run(stage: &Stage, words: &str) -> Command {
    let mut command = stage.words(&format!("vm run --qemu {} {words}", stage.file("qemu")));
    command.env("XDG_CACHE_HOME", stage.path().join("cache"));
    command
}

fn vm(stage: &Stage, words: &str) -> Said {
    Said::by(&mut vm_run(stage, words))
}

#[test]
fn without_a_kernel_in_the_cache_the_cure_is_named() {
    let stage = Stage::new();
    with_guest(&stage, "");
    fs::remove_dir_all(stage.path().join("cache")).unwrap();
    let said = vm(&stage, "-- doctor").ended(1).err;
    assert!(said.contains("`doorbell vm build --kernel 6.1`"), "{said}");
}

#[test]
fn what_the_command_in_the_guest_would_refuse_is_refused_before_anything_boots() {
    let stage = Stage::new();
    with_guest(&stage, "");
    for (words, status, complaint) in [
        ("-- pingg", 2, "unrecognized subcommand"),
        ("-- ping --gap soon", 2, "invalid value"),
        ("-- ping -o /nowhere/at/all.json", 2, "there is no such folder"),
        ("-- vm run -- doctor", 2, "a guest in a guest"),
        ("-- tune", 2, "gone with the guest"),
        ("-- report x.json -o x.html", 2, "files of this machine are not there"),
        ("-- compare x.json y.json", 2, "files of this machine are not there"),
        ("--cpus 3 --numa 2 -- doctor", 2, "3 CPUs"),
        ("--accel kvm --deterministic -- doctor", 2, "--accel tcg"),
        ("--driver -- doctor", 2, "only --accel uintr has a CPU with user interrupts"),
        // An emulator without them is not taken for one that has them.
        ("--accel uintr -- doctor", 1, "(QEMU 0.1) has no user interrupts"),
    ] {
        let said = vm(&stage, words).ended(status).err;
        assert!(said.contains(complaint), "{words}: {said}");
    }
    // A shell talks with a terminal.
    let said = stage.run(&format!("vm shell --qemu {}", stage.file("qemu"))).ended(2).err;
    assert!(said.contains("give its commands with -c"), "{said}");
    assert!(!stage.path().join("started").exists());
}

#[test]
fn the_exit_status_is_that_of_the_command_in_the_guest_which_has_failed_without_a_result() {
    let stage = Stage::new();
    that_sends(&stage, "", &[Frame::Stdout(b"a table\n".to_vec()), Frame::Ended(4)]);
    let said = vm(&stage, "-- doctor").ended(4);
    assert_eq!(said.out, "a table\n");
    assert!(said.err.contains("an emulator's"), "{}", said.err);
    that_sends(&stage, "", &[Frame::Ended(0)]);
    let said = vm(&stage, "-- ping").ended(1).err;
    assert!(said.contains("left no result"), "{said}");
}

/// What came after the end was kept, as long as it came: gigabytes.
#[test]
fn a_guest_that_goes_on_sending_after_its_end_fills_no_memory() {
    let stage = Stage::new();
    with_guest(&stage, r#"cat "$here/end" >&"$channel"; head -c 3G /dev/zero >&"$channel""#);
    fs::write(stage.path().join("end"), Frame::Ended(4).encode()).unwrap();
    let mut limited = Command::new("prlimit");
    limited.arg("--as=1500000000");
    Said::by(&mut with(limited, &vm_run(&stage, "-- doctor"))).ended(4);
}

#[test]
fn whatever_ends_the_command_the_emulator_ends_with_it() {
    for (end, status) in [(Signal::INT, Some(130)), (Signal::TERM, Some(130)), (Signal::KILL, None)] {
        let stage = Stage::new();
        that_sends(&stage, r#"read -r -N1 -u "$channel_in""#, &[Frame::Ended(130)]);
        let child = vm_run(&stage, "-- doctor").spawn().unwrap();
        wait_until("the emulator", || stage.path().join("started").exists());
        kill_process(Pid::from_child(&child), end).unwrap();
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.status, status, "{end:?}: {}", said.err);
        if end == Signal::KILL {
            // The death signal reaches the emulator itself; QEMU is
            // one process, the script's `sleep` is not its like.
            let script = |pid: &i32| {
                fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.contains("\0-machine\0"))
            };
            wait_until("the emulator's end", || !stage.processes().iter().any(script));
            stage.processes().into_iter().filter_map(Pid::from_raw).for_each(|pid| {
                let _ = kill_process(pid, Signal::KILL);
            });
        }
        stage.wait_until_empty();
    }
}

/// The result of a real run, and the same as an emulator would have measured it.
fn host_and_guest(stage: &Stage) -> [String; 2] {
    let (host, guest) = (data("ping"), stage.file("guest.json"));
    let mut result: serde_json::Value = serde_json::from_slice(&fs::read(&host).unwrap()).unwrap();
    result["machine"]["virtualisation"]["emulated"] = true.into();
    fs::write(&guest, serde_json::to_vec(&result).unwrap()).unwrap();
    [host, guest]
}

#[test]
fn a_result_from_an_emulator_is_not_compared_with_one_from_a_machine() {
    let stage = Stage::new();
    let [host, guest] = host_and_guest(&stage);
    for [one, other] in [[&host, &guest], [&guest, &host]] {
        let complaint = stage.run(&format!("compare {one} {other}")).ended(1).err;
        for told in ["one was measured in an emulator and the other was not", one, other] {
            assert!(complaint.contains(told), "{complaint}");
        }
    }
    // Two of one emulator are compared, whatever comes of so few blocks.
    let compare = format!("compare {guest} {guest}");
    let text = stage.run(&compare).ended_with_one_of(&[0, 4]).out;
    assert!(text.contains("against") && text.starts_with("emulated: every time here"), "{text}");
    // In a terminal the first lines are as short as those that follow.
    let text = Said::by(stage.words(&compare).env("COLUMNS", "60")).out;
    let wide = text.lines().take(4).find(|line| line.chars().count() > 60);
    assert!(text.starts_with("emulated: every time here") && wide.is_none(), "{text}");
}

#[test]
fn every_view_says_that_a_result_is_an_emulators() {
    let stage = Stage::new();
    let [host, guest] = host_and_guest(&stage);
    let formats = ["csv", "markdown", "hgrm", "hlog", "classic"].map(|format| format!("export {format}"));
    for view in formats.into_iter().chain(["report --quiet --output -".to_owned()]) {
        let text = |file: &str| stage.run(&format!("{view} {file}")).ended(0).out;
        // The page carries its own result, whose field has that name: the sentence is looked for.
        let word = if view.starts_with("report") { "an emulator&#39;s, not" } else { "emulated" };
        assert!(text(&guest).contains(word), "{view} does not say it");
        assert!(!text(&host).contains(word), "{view} says it of a machine");
    }
}

/// A guest whose verb leaves the result of a real run when it is told to stop, or at once.
fn leaves_a_result(stage: &Stage, waits: bool, kernel_says: &str) -> PathBuf {
    let result = fs::read(data("ping")).unwrap();
    let target = stage.path().join("result.json");
    let mut end = Vec::new();
    send_file(&mut end, target.to_str().unwrap(), &result).unwrap();
    end.extend(Frame::Ended(if waits { 130 } else { 0 }).encode());
    let waiting = if waits { r#"read -r -N1 -u "$channel_in""# } else { "true" };
    with_guest(
        stage,
        &format!("{waiting}; echo '{kernel_says}' >&\"$console\"; cat \"$here/end\" >&\"$channel\""),
    );
    fs::write(stage.path().join("end"), end).unwrap();
    target
}

#[test]
fn a_result_from_a_kernel_that_complained_says_so_itself() {
    let stage = Stage::new();
    let target = leaves_a_result(&stage, false, "[ 30.0] watchdog: BUG: soft lockup - CPU#1 stuck for 26s!");
    let said = vm(&stage, &format!("-- --quiet ping -o {}", target.display())).ended(0).err;
    assert!(said.contains("soft lockup"), "{said}");
    let result: serde_json::Value = serde_json::from_slice(&fs::read(target).unwrap()).unwrap();
    let warnings = result["warnings"].as_array().unwrap();
    let complaint = warnings.iter().find(|warning| warning["name"] == "guest-complained").unwrap();
    assert!(complaint["cause"].as_str().unwrap().contains("soft lockup - CPU#1"), "{complaint}");
}

#[test]
fn what_was_measured_until_the_time_was_up_comes_home_and_the_command_has_failed() {
    let stage = Stage::new();
    let target = leaves_a_result(&stage, true, "");
    let mut seconds = 1;
    // On a busy machine the script may need longer than that to be up.
    let told = loop {
        let said = vm(&stage, &format!("--timeout {seconds}s -- ping -o {}", target.display())).ended(1).err;
        if !said.contains("did not reach its first process") || seconds > 100 {
            break said;
        }
        seconds *= 3;
    };
    assert!(told.contains("--timeout gives it more; what it had measured is in"), "{told}");
    assert!(target.exists());
}

#[test]
fn a_result_that_cannot_be_saved_where_it_should_be_is_saved_elsewhere() {
    let stage = Stage::new();
    let target = leaves_a_result(&stage, false, "");
    // A folder that turned up meanwhile has the name.
    fs::create_dir(&target).unwrap();
    let told = vm(&stage, &format!("-- ping -o {}", target.display())).ended(1).err;
    let rescued = told.split("The result was saved as ").nth(1).unwrap_or_else(|| panic!("{told}")).trim();
    fs::remove_file(rescued).unwrap();
}

#[test]
fn a_second_interrupt_ends_a_guest_that_does_not_stop() {
    let stage = Stage::new();
    with_guest(&stage, "sleep 1000");
    let mut child = vm_run(&stage, "-- doctor").spawn().unwrap();
    while !stage.path().join("started").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => kill_process(Pid::from_child(&child), Signal::INT).unwrap(),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(130));
    stage.processes().into_iter().filter_map(Pid::from_raw).for_each(|pid| {
        let _ = kill_process(pid, Signal::KILL);
    });
    stage.wait_until_empty();
}
